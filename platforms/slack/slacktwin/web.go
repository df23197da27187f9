package slacktwin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// method is one Web API method. do is called with mu held and either changes nothing and returns a *refusal, or returns
// what the answer has beside "ok".
type method struct {
	do   func(args) (map[string]any, error)
	tier tier
	form bool // it takes no JSON bodies
	app  bool // it wants the app-level token
	any  bool // it takes both tokens
}

func (t *Twin) webMethods() map[string]method {
	return map[string]method{
		"apps.connections.open": {do: t.connectionsOpen, tier: tier3, app: true},
		"auth.test":             {do: t.authTest, any: true},

		"chat.postMessage":   {do: t.chatPostMessage, tier: special},
		"chat.postEphemeral": {do: t.chatPostEphemeral, tier: tier4},
		"chat.update":        {do: t.chatUpdate, tier: tier3},
		"chat.delete":        {do: t.chatDelete, tier: tier3},
		"chat.getPermalink":  {do: t.chatGetPermalink, form: true},
		"chat.startStream":   {do: t.chatStartStream, tier: tier2},
		"chat.appendStream":  {do: t.chatAppendStream, tier: tier4},
		"chat.stopStream":    {do: t.chatStopStream, tier: tier2},

		"conversations.history": {do: t.conversationsHistory, tier: tier3},
		"conversations.replies": {do: t.conversationsReplies, tier: tier3},
		"conversations.info":    {do: t.conversationsInfo, tier: tier3, form: true},
		"conversations.members": {do: t.conversationsMembers, tier: tier4, form: true},
		"conversations.open":    {do: t.conversationsOpen, tier: tier3},
		"conversations.join":    {do: t.conversationsJoin, tier: tier3},

		"reactions.add":    {do: t.reactionsAdd, tier: tier3},
		"reactions.remove": {do: t.reactionsRemove, tier: tier2},
		"reactions.get":    {do: t.reactionsGet, tier: tier3, form: true},

		"users.info":            {do: t.usersInfo, tier: tier4, form: true},
		"users.list":            {do: t.usersList, tier: tier2, form: true},
		"usergroups.list":       {do: t.usergroupsList, tier: tier2, form: true},
		"usergroups.users.list": {do: t.usergroupUsers, tier: tier2, form: true},

		"views.open":    {do: t.viewsOpen, tier: tier4},
		"views.push":    {do: t.viewsPush, tier: tier4},
		"views.update":  {do: t.viewsUpdate, tier: tier4},
		"views.publish": {do: t.viewsPublish, tier: tier4},

		"files.getUploadURLExternal":   {do: t.filesGetUploadURL, tier: tier4, form: true},
		"files.completeUploadExternal": {do: t.filesCompleteUpload, tier: tier4},
		"files.info":                   {do: t.filesInfo, tier: tier4, form: true},

		"agents.sessions.setStatus":             {do: t.sessionsSetStatus, tier: tier3},
		"agents.sessions.rename":                {do: t.sessionsRename, tier: tier3},
		"assistant.threads.setStatus":           {do: t.assistantSetStatus, tier: special},
		"assistant.threads.setTitle":            {do: t.assistantSetTitle, tier: tier4},
		"assistant.threads.setSuggestedPrompts": {do: t.assistantSetPrompts, tier: tier4},
	}
}

// refusal is {"ok":false}: Slack's word, and details for whoever has to mend the request.
type refusal struct {
	code    string
	details []string
}

func (e *refusal) Error() string { return e.code }

func refuse(code string, details ...string) error { return &refusal{code, details} }

// Handler serves /api/METHOD, /files/, /upload/, /response/ and /socket.
func (t *Twin) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", t.serveAPI)
	mux.HandleFunc("POST /upload/{id}", t.serveUpload)
	mux.HandleFunc("POST /response/{id}", t.serveResponse)
	mux.HandleFunc("GET /files/{id}/{name...}", t.serveFile)
	mux.HandleFunc("GET /signin", serveSignIn)
	mux.HandleFunc("GET /socket", t.serveSocket)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.learnURL(r)
		mux.ServeHTTP(w, r)
	})
}

func (t *Twin) learnURL(r *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.url == "" {
		t.url = "http://" + r.Host
	}
}

// answer is what goes back over the wire.
type answer struct {
	status     int
	body       []byte
	retryAfter time.Duration
	drop       bool
}

// serveAPI is one call, from the wire to the journal.
func (t *Twin) serveAPI(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("method")
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return // the caller is gone
	}
	a, token, err := decodeCall(r, body, t.methods[name].form)

	t.mu.Lock()
	fault := t.methodFault(name)
	t.mu.Unlock()
	if fault == nil {
		fault = &Fault{}
	}
	if !fault.Late && !t.sleep(r.Context(), fault.Delay) {
		return
	}
	out := t.call(name, a, token, err, fault)
	if fault.Late && !t.sleep(r.Context(), fault.Delay) {
		return
	}
	out.write(w)
}

// call does what is asked under mu, bends the answer to the fault, and writes the journal.
func (t *Twin) call(name string, a args, token string, malformed error, fault *Fault) answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	bent := fault.Drop || fault.Error != "" || fault.Status != 0
	entry := Call{Method: name, Args: a, Status: http.StatusOK, At: t.opt.Now(), Faulted: bent || fault.Delay > 0}
	out := answer{status: http.StatusOK}
	if !bent || fault.Commit {
		result, err := t.perform(name, a, token, malformed)
		entry.note(result, err)
		out = answerOf(result, err)
	}
	if bent {
		out = bentAnswer(fault)
		entry.OK, entry.Error = false, fault.Error
	}
	entry.Status = out.status
	if out.drop {
		entry.Status = 0
	}
	t.calls = append(t.calls, entry)
	t.opt.Logger.Debug("slacktwin: call", "method", name, "status", entry.Status, "ok", entry.OK, "error", entry.Error)
	return out
}

// perform checks who calls, how often and what, and does it.
func (t *Twin) perform(name string, a args, token string, malformed error) (map[string]any, error) {
	m, ok := t.methods[name]
	if !ok {
		return nil, refuse("unknown_method")
	}
	if err := t.admit(m, token); err != nil {
		return nil, err
	}
	if malformed != nil {
		return nil, malformed
	}
	if t.opt.Enforce {
		if wait := t.limit(name, m, a); wait > 0 {
			return nil, &rateLimited{wait}
		}
	}
	return m.do(a)
}

// admit checks the token, doc m/auth.test, errors.
func (t *Twin) admit(m method, token string) error {
	switch {
	case token == "":
		return refuse("not_authed")
	case token != t.opt.BotToken && token != t.opt.AppToken:
		return refuse("invalid_auth")
	case token == t.opt.BotToken && t.invalid != "":
		return refuse(t.invalid)
	case m.any:
		return nil
	case m.app != (token == t.opt.AppToken):
		return refuse("not_allowed_token_type")
	}
	return nil
}

type rateLimited struct{ wait time.Duration }

func (e *rateLimited) Error() string { return "ratelimited" }

func answerOf(result map[string]any, err error) answer {
	if limited, ok := errors.AsType[*rateLimited](err); ok {
		return answer{
			status: http.StatusTooManyRequests, retryAfter: limited.wait,
			body: encode(map[string]any{"ok": false, "error": "ratelimited"}),
		}
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		return answer{status: http.StatusOK, body: refused.encode()}
	}
	if err != nil {
		return answer{status: http.StatusInternalServerError, body: []byte(err.Error())}
	}
	result["ok"] = true
	if warning, ok := result["warning"]; ok {
		meta, _ := result["response_metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta["warnings"] = []any{warning}
		result["response_metadata"] = meta
	}
	return answer{status: http.StatusOK, body: encode(result)}
}

func (e *refusal) encode() []byte {
	j := map[string]any{"ok": false, "error": e.code}
	if len(e.details) > 0 {
		messages := []string{}
		for _, d := range e.details {
			messages = append(messages, "[ERROR] "+d)
		}
		j["errors"] = e.details
		j["response_metadata"] = map[string]any{"messages": messages}
	}
	return encode(j)
}

func bentAnswer(f *Fault) answer {
	out := answer{status: http.StatusOK, retryAfter: f.RetryAfter, drop: f.Drop}
	if f.Status != 0 {
		out.status = f.Status
	}
	if f.Error != "" {
		out.body = encode(map[string]any{"ok": false, "error": f.Error})
	} else {
		out.body = []byte(http.StatusText(out.status) + "\n")
	}
	return out
}

func (o answer) write(w http.ResponseWriter) {
	if o.drop {
		panic(http.ErrAbortHandler) // how net/http closes a connection without an answer
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if !json.Valid(o.body) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	if o.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(wholeSeconds(o.retryAfter)))
	}
	w.WriteHeader(o.status)
	_, _ = w.Write(o.body)
}

// note fills in what the call came to.
func (c *Call) note(result map[string]any, err error) {
	c.OK = err == nil
	if err != nil {
		c.Error = err.Error()
		return
	}
	c.Channel, _ = result["channel"].(string)
	c.TS, _ = result["ts"].(string)
	c.Warning, _ = result["warning"].(string)
}

// args are the arguments of a call, whatever its form: text as it is, JSON as text. What is null is absent.
type args map[string]string

func (a args) boolean(name string) bool { return a[name] == "true" || a[name] == "1" }

// list reads "a,b" and ["a","b"].
func (a args) list(name string) []string {
	var list []string
	if err := json.Unmarshal([]byte(a[name]), &list); err == nil {
		return list
	}
	return strings.FieldsFunc(a[name], func(r rune) bool { return r == ',' || r == ' ' })
}

// decodeCall reads the arguments and the token: of the header, else of the form field. In a JSON body there is no token,
// doc apis/web-api.
func decodeCall(r *http.Request, body []byte, formOnly bool) (a args, token string, err error) {
	a, err = decodeArgs(r.Method, r.Header.Get("Content-Type"), r.URL.RawQuery, body, formOnly)
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer && !isJSON(r.Header.Get("Content-Type")) {
		token = a["token"]
	}
	delete(a, "token")
	return a, token, err
}

func isJSON(contentType string) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	return media == "application/json"
}

// decodeArgs reads the arguments of a call, doc apis/web-api, evaluating. The map is never nil.
func decodeArgs(verb, contentType, query string, body []byte, formOnly bool) (args, error) {
	a := args{}
	if err := a.addForm(query); err != nil {
		return a, err
	}
	if verb == http.MethodGet {
		return a, nil
	}
	if len(body) > maxBody {
		return a, refuse("request_too_large")
	}
	media, params, err := mime.ParseMediaType(contentType)
	switch {
	case contentType == "" && len(body) == 0:
		return a, nil
	case contentType == "":
		return a, refuse("missing_post_type")
	case err != nil:
		return a, refuse("invalid_post_type")
	case media == "application/x-www-form-urlencoded":
		return a, a.addForm(string(body))
	case media == "multipart/form-data":
		return a, a.addMultipart(body, params["boundary"])
	case media == "application/json" && formOnly:
		return a, nil // the arguments are not seen at all
	case media == "application/json":
		return a, a.addJSON(body)
	}
	return a, refuse("invalid_post_type")
}

func (a args) addForm(encoded string) error {
	values, err := url.ParseQuery(encoded)
	if err != nil {
		return refuse("invalid_form_data")
	}
	for name, v := range values {
		if strings.Contains(name, "[") {
			return refuse("invalid_array_arg")
		}
		a[name] = v[0]
	}
	return nil
}

func (a args) addMultipart(body []byte, boundary string) error {
	if boundary == "" {
		return refuse("invalid_form_data")
	}
	form, err := multipart.NewReader(bytes.NewReader(body), boundary).ReadForm(maxBody)
	if err != nil {
		return refuse("invalid_form_data")
	}
	for name, v := range form.Value {
		a[name] = v[0]
	}
	return nil
}

func (a args) addJSON(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if !json.Valid(body) {
		return refuse("invalid_json")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil || object == nil {
		return refuse("json_not_object")
	}
	for name, raw := range object {
		var text string
		switch {
		case bytes.Equal(raw, []byte("null")):
		case json.Unmarshal(raw, &text) == nil:
			a[name] = text
		default:
			a[name] = string(raw)
		}
	}
	return nil
}

// encode writes JSON without escaping <, > and &.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("slacktwin: encode: %v", err)) // all values are built here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func writeCursor(ts string) string { return base64.StdEncoding.EncodeToString([]byte("next_ts:" + ts)) }

// readCursor returns the ts of a cursor, or "".
func readCursor(cursor string) string {
	b, err := base64.StdEncoding.DecodeString(cursor)
	ts, ok := strings.CutPrefix(string(b), "next_ts:")
	if err != nil || !ok || !validTS(ts) {
		return ""
	}
	return ts
}

func (t *Twin) authTest(args) (map[string]any, error) {
	return map[string]any{
		"url": t.url + "/", "team": t.opt.TeamName, "team_id": t.opt.Team, "user": t.opt.BotName,
		"user_id": t.opt.BotUser, "bot_id": botID(t.opt.BotUser), "app_id": t.opt.AppID,
		"is_enterprise_install": false,
	}, nil
}

// RevokeTokens makes the bot token worthless and tells the bot.
func (t *Twin) RevokeTokens() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.invalid = "token_revoked"
	t.emit(nil, map[string]any{
		"type": "tokens_revoked", "tokens": map[string]any{"bot": []string{t.opt.BotUser}}, "event_ts": t.newTS(),
	})
}

// Uninstall removes the app and tells the bot.
func (t *Twin) Uninstall() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.invalid = "account_inactive"
	t.emit(nil, map[string]any{"type": "app_uninstalled", "event_ts": t.newTS()})
}
