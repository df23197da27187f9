package slacktwin

import (
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// fileStore holds files by id, and uploads of the bot that are not complete.
type fileStore struct {
	files   map[string]*file
	uploads map[string]*file
}

type file struct {
	File
	content  []byte
	uploaded bool
}

// File returns a file and its content.
func (t *Twin) File(id string) (f File, content []byte, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.files[id]
	if !ok {
		return File{}, nil, false
	}
	f = found.File
	f.Channels = slices.Clone(f.Channels)
	return f, slices.Clone(found.content), true
}

// addUpload stores what a person sent.
func (t *Twin) addUpload(user string, r *room, u Upload) File {
	f := &file{content: slices.Clone(u.Content), uploaded: true, File: File{
		ID: t.newID("F"), Name: u.Name, Title: u.Name, MediaType: u.MediaType, User: user, Size: len(u.Content),
		External: u.External, Connect: u.Connect, Channels: []string{r.ID}, Created: t.opt.Now(),
	}}
	t.keep(f)
	return f.File
}

func (t *Twin) keep(f *file) {
	if f.MediaType == "" {
		f.MediaType = mime.TypeByExtension(path.Ext(f.Name))
	}
	if f.MediaType == "" {
		f.MediaType = "application/octet-stream"
	}
	f.URL = t.fileURL(f.ID, f.Name)
	t.files[f.ID] = f
}

func (t *Twin) fileURL(id, name string) string {
	return t.url + "/files/" + t.opt.Team + "-" + id + "/" + url.PathEscape(name)
}

func (t *Twin) filesJSON(fs []File) []any {
	out := []any{}
	for _, f := range fs {
		out = append(out, t.fileJSON(f, false))
	}
	return out
}

// fileJSON is a file object. Files of Slack Connect show themselves only to files.info, which asks with full.
func (t *Twin) fileJSON(f File, full bool) map[string]any {
	if f.Connect && !full {
		return map[string]any{"id": f.ID, "created": f.Created.Unix(), "file_access": "check_file_info"}
	}
	kind := strings.TrimPrefix(path.Ext(f.Name), ".")
	mode, externalType := "hosted", ""
	if f.External {
		mode, externalType = "external", "gdrive"
	}
	link := t.fileURL(f.ID, f.Name)
	j := map[string]any{
		"id": f.ID, "created": f.Created.Unix(), "timestamp": f.Created.Unix(), "name": f.Name, "title": f.Title,
		"mimetype": f.MediaType, "filetype": kind, "pretty_type": strings.ToUpper(kind), "user": f.User,
		"user_team": t.teamOf(f.User), "editable": false, "size": f.Size, "mode": mode, "is_external": f.External,
		"external_type": externalType, "is_public": true, "public_url_shared": false, "display_as_bot": false,
		"username": "", "file_access": "visible", "url_private": link, "url_private_download": link + "?download=1",
		"permalink": t.url + "/permalink/" + f.ID, "is_starred": false, "has_rich_preview": false,
	}
	if full {
		j["channels"] = f.Channels
		j["comments_count"] = 0
	}
	return j
}

func (t *Twin) filesInfo(a args) (map[string]any, error) {
	f, ok := t.files[a["file"]]
	if !ok {
		return nil, refuse("file_not_found")
	}
	return map[string]any{"file": t.fileJSON(f.File, true), "comments": []any{}, "paging": map[string]any{
		"count": 100, "total": 0, "page": 1, "pages": 0,
	}}, nil
}

// serveFile serves url_private to whoever shows the bot token; others are sent to the sign-in page, as Slack does.
func (t *Twin) serveFile(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	f, ok := t.files[strings.TrimPrefix(r.PathValue("id"), t.opt.Team+"-")]
	allowed := t.invalid == "" && r.Header.Get("Authorization") == "Bearer "+t.opt.BotToken
	t.mu.Unlock()
	if !allowed {
		http.Redirect(w, r, "/signin?redir="+url.QueryEscape(r.URL.Path), http.StatusFound)
		return
	}
	if !ok || f.External || !f.uploaded {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", f.MediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(f.content)))
	_, _ = w.Write(f.content)
}

func serveSignIn(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!DOCTYPE html><title>Sign in</title><body>Sign in to your workspace</body>")
}

// filesGetUploadURL is the first of the three steps of an upload, doc m/files.getUploadURLExternal.
func (t *Twin) filesGetUploadURL(a args) (map[string]any, error) {
	size, err := strconv.Atoi(a["length"])
	switch {
	case a["filename"] == "" || err != nil || size < 1:
		return nil, refuse("invalid_arguments", "missing required field: filename, length")
	case size > maxFileSize:
		return nil, refuse("file_upload_size_restricted")
	}
	f := &file{File: File{
		ID: t.newID("F"), Name: a["filename"], Title: a["filename"], User: t.opt.BotUser, Size: size, Created: t.opt.Now(),
	}}
	t.uploads[f.ID] = f
	return map[string]any{"upload_url": t.url + "/upload/" + f.ID, "file_id": f.ID}, nil
}

// serveUpload is the second step: the content, raw or as the first file of a multipart form.
func (t *Twin) serveUpload(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	f, ok := t.uploads[r.PathValue("id")]
	t.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	content, err := uploadContent(r)
	if err != nil {
		http.Error(w, "bad upload", http.StatusBadRequest)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(content) != f.Size {
		http.Error(w, "wrong length", http.StatusBadRequest)
		return
	}
	f.content, f.uploaded = content, true
	_, _ = io.WriteString(w, "OK - "+strconv.Itoa(len(content)))
}

func uploadContent(r *http.Request) ([]byte, error) {
	body := io.Reader(r.Body)
	if media, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == "multipart/form-data" {
		part, err := multipart.NewReader(r.Body, params["boundary"]).NextPart()
		if err != nil {
			return nil, err
		}
		body = part
	}
	return io.ReadAll(io.LimitReader(body, maxFileSize+1))
}

// filesCompleteUpload is the third step: the files get their titles and are posted.
func (t *Twin) filesCompleteUpload(a args) (map[string]any, error) {
	var wanted []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	if err := json.Unmarshal([]byte(a["files"]), &wanted); err != nil || len(wanted) == 0 || len(wanted) > maxFiles {
		return nil, refuse("invalid_arguments", "1 to 10 items allowed [json-pointer:/files]")
	}
	for _, w := range wanted {
		if f, ok := t.uploads[w.ID]; !ok || !f.uploaded {
			return nil, refuse("file_not_found")
		}
	}
	channels := a.list("channels")
	if a["channel_id"] != "" {
		channels = []string{a["channel_id"]}
	}
	var rooms []*room
	var threads []string
	for _, c := range channels {
		r, err := t.botRoom(c)
		if err != nil {
			return nil, err
		}
		thread, err := threadOf(a, r)
		if err != nil {
			return nil, err
		}
		rooms, threads = append(rooms, r), append(threads, thread)
	}
	blocks, err := checkBlocks(a["blocks"], inMessage, t.newID)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, w := range wanted {
		f := t.uploads[w.ID]
		delete(t.uploads, w.ID)
		if w.Title != "" {
			f.Title = w.Title
		}
		for _, r := range rooms {
			f.Channels = append(f.Channels, r.ID)
		}
		t.keep(f)
		files = append(files, f.File)
	}
	for i, r := range rooms {
		m := t.botMessage(content{text: a["initial_comment"], blocks: blocks}, threads[i])
		m.Files = files
		m.Subtype = "file_share"
		t.post(r, m)
	}
	return map[string]any{"files": t.filesJSON(files)}, nil
}
