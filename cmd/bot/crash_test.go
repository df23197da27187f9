package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// size is how much is said, asked and killed.
type size struct {
	turns, approvals, kills int
	patience                time.Duration // for all of it
}

// TestNothingIsLostAndNothingIsSaidTwice kills the bot at random moments, with SIGKILL, while people talk to it and decide
// what it asks. At the end each message must have its one answer, in its place and in order, and each approved call must
// have run once. PARLEY_CRASH=long is the long form, PARLEY_CRASH_SEED=N repeats the choices of an earlier run.
func TestNothingIsLostAndNothingIsSaidTwice(t *testing.T) {
	talk := map[transport]size{
		overHTTP:   {turns: 24, kills: 6, patience: time.Minute},
		overSocket: {turns: 8, kills: 2, patience: time.Minute},
	}
	grow := size{turns: 10, kills: 5, patience: time.Minute}
	ask := map[transport]size{
		overHTTP:   {approvals: 8, kills: 5, patience: time.Minute},
		overSocket: {approvals: 2, kills: 2, patience: time.Minute},
	}
	if os.Getenv("PARLEY_CRASH") == "long" {
		talk[overHTTP] = size{turns: 120, kills: 40, patience: 10 * time.Minute}
		talk[overSocket] = size{turns: 40, kills: 10, patience: 10 * time.Minute}
		grow = size{turns: 40, kills: 20, patience: 10 * time.Minute}
		ask[overHTTP] = size{approvals: 40, kills: 40, patience: 10 * time.Minute}
		ask[overSocket] = size{approvals: 10, kills: 10, patience: 10 * time.Minute}
	}
	seed := seedOf(t)
	t.Run("answers that grow", func(t *testing.T) { crashGrow(t, grow, seed) })
	for _, way := range []transport{overHTTP, overSocket} {
		t.Run(fmt.Sprintf("messages over %s", way), func(t *testing.T) { crashTalk(t, way, talk[way], seed) })
		t.Run(fmt.Sprintf("approvals over %s", way), func(t *testing.T) { crashAsk(t, way, ask[way], seed) })
	}
}

func seedOf(t *testing.T) uint64 {
	seed := rand.Uint64()
	if s := os.Getenv("PARLEY_CRASH_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal("PARLEY_CRASH_SEED:", err)
		}
	}
	t.Logf("repeat the choices of this run with PARLEY_CRASH_SEED=%d", seed)
	return seed
}

// dice are the random choices of one goroutine.
func dice(seed uint64, of int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(of))) }

func between(d *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(d.Int64N(int64(most-least)))
}

// mishaps makes the moments wide in which a kill hurts: between what is done and the word that it is done. Now and then
// that word gets lost altogether.
func (o *office) mishaps(d *rand.Rand, calls int) {
	for range calls {
		switch d.IntN(8) {
		case 0:
			o.twin.Fault(slacktwin.Fault{Method: "chat.postMessage", Commit: true, Drop: true})
		case 1:
			o.twin.Fault(slacktwin.Fault{Method: "chat.postMessage", Status: 503})
		case 2:
			o.twin.Fault(slacktwin.Fault{Event: "*", LoseAck: true, Skip: d.IntN(3)})
		default:
			o.twin.Fault(slacktwin.Fault{Method: "chat.postMessage", Delay: between(d, time.Millisecond, 150*time.Millisecond), Late: true})
		}
	}
}

// haunt runs life after life, lets things happen in each, and kills all but the last, which it returns.
func (o *office) haunt(d *rand.Rand, kills int, during func(n int)) *life {
	for n := range kills {
		l := o.start()
		during(n)
		o.moment(d)
		l.kill()
	}
	last := o.start()
	during(kills)
	return last
}

// moment waits until the life that has just begun is to be taken: in one of four before or while it takes up what was
// left, in the others later and, two times of three, right after something has happened.
func (o *office) moment(d *rand.Rand) {
	const startup = 250 * time.Millisecond
	if d.IntN(4) == 0 {
		<-time.After(between(d, 0, startup))
		return
	}
	<-time.After(between(d, startup/2, 3*startup))
	if d.IntN(3) == 0 {
		return
	}
	select {
	case <-o.nextChange():
		<-time.After(between(d, 0, 30*time.Millisecond))
	case <-time.After(time.Second):
	}
}

// A thread or a direct message, and what a person said in it.
type talk struct {
	who     string
	channel string
	thread  string // empty in a direct message, and before the first word
	said    []words
}

type words struct{ ts, answer string }

func crashTalk(t *testing.T, way transport, s size, seed uint64) {
	t.Parallel()
	o := newOffice(t, way, s.patience, "BOT_MODEL=echo", "BOT_ECHO_DELAY=120ms")
	o.crashTalk(s, dice(seed, s.turns))
}

// crashGrow is crashTalk with a model that takes its time over every word, so that people see answers grow, and kills
// leave answers half said.
func crashGrow(t *testing.T, s size, seed uint64) {
	t.Parallel()
	o := newOffice(t, overHTTP, s.patience, "BOT_MODEL=openai:slow", "OPENAI_BASE_URL="+slowModel(t))
	o.crashTalk(s, dice(seed, s.turns+2000))
}

// slowModel is a server that speaks OpenAI's protocol and says "echo: " and the last message, for a second.
func slowModel(t *testing.T) (baseURL string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		words := strings.SplitAfter("echo: "+req.Messages[len(req.Messages)-1].Content, " ")
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range words {
			text, err := json.Marshal(word)
			if err != nil {
				return
			}
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", text)
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-time.After(time.Second / time.Duration(len(words))):
			case <-r.Context().Done():
				return
			}
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (o *office) crashTalk(s size, d *rand.Rand) {
	t := o.t
	t.Helper()
	o.mishaps(d, s.turns)
	talks := o.openTalks(d, max(2, s.turns/4))
	left := s.turns
	last := o.haunt(d, s.kills, func(n int) {
		batch := left / (s.kills - n + 1)
		left -= batch
		for range batch {
			o.speak(d, talks[d.IntN(len(talks))])
		}
	})
	o.awaitAnswers(talks)
	last.stop()
	o.start().ready().stop() // one more life has nothing more to say
	o.checkTalks(talks, s.turns)
	o.checkMemory(talks)
	o.checkAtRest()
	t.Logf("%d messages in %d conversations, %d kills; %s", s.turns, len(talks), s.kills, o.traffic())
}

// openTalks prepares conversations: one in eight is a direct message.
func (o *office) openTalks(d *rand.Rand, n int) []*talk {
	talks := make([]*talk, n)
	people := []string{ada, ben, mallory, grace, hedy}
	for i := range talks {
		talks[i] = &talk{who: people[i%len(people)], channel: general}
		if i%8 == 3 && i/8 < len(people) {
			who := people[i/8]
			talks[i].who, talks[i].channel = who, "D"+who[1:]
			o.twin.AddChannel(slacktwin.Channel{ID: talks[i].channel, IM: true, Members: []string{who, o.twin.Options().BotUser}})
		}
	}
	return talks
}

// speak lets the person of a conversation say the next thing, without waiting for an answer to the last.
func (o *office) speak(d *rand.Rand, k *talk) {
	o.t.Helper()
	text := fmt.Sprintf("message %d of %s, %x", len(k.said)+1, k.who, d.Uint32())
	said := text
	direct := k.channel != general
	if !direct && (len(o.answersIn(k)) == 0 || d.IntN(2) == 0) { // where the bot talks, its name is not needed
		said = o.mention(text)
	}
	ts, err := o.twin.Say(k.who, k.channel, k.thread, said)
	if err != nil {
		o.t.Fatal(err)
	}
	if k.thread == "" && !direct {
		k.thread = ts
	}
	k.said = append(k.said, words{ts: ts, answer: "echo: " + text})
}

func (o *office) answersIn(k *talk) []slacktwin.Message {
	switch {
	case k.channel != general:
		return o.said(k.channel)
	case k.thread == "":
		return nil
	}
	return o.saidIn(k.channel, k.thread)
}

// checkTalks looks at every conversation: its answers and no others, and in the order in which the bot took the messages.
func (o *office) checkTalks(talks []*talk, turns int) {
	o.t.Helper()
	answered := 0
	channels := map[string]bool{}
	for _, k := range talks {
		answers := o.answersIn(k)
		answered += len(answers)
		channels[k.channel] = true
		if wrong := o.wrongWith(k, answers); len(wrong) > 0 {
			o.t.Errorf("%s\n%s", strings.Join(wrong, "\n"), o.transcript(k, answers))
		}
	}
	posted := 0
	for channel := range channels {
		posted += len(o.said(channel))
	}
	if answered != turns || posted != turns {
		o.t.Errorf("the bot said %d things, %d of them in the conversations, want %d", posted, answered, turns)
	}
}

// checkMemory looks at what the bot remembers: each message once, each with its answer after it.
func (o *office) checkMemory(talks []*talk) {
	o.t.Helper()
	var want, got []string
	for _, k := range talks {
		for _, w := range k.said {
			want = append(want, strings.TrimPrefix(w.answer, "echo: "))
		}
	}
	for session, history := range o.histories() {
		for i, m := range history {
			if m.Role == llm.User {
				got = append(got, m.Content.Text())
			} else if i == 0 || "echo: "+history[i-1].Content.Text() != m.Content.Text() {
				o.t.Errorf("in %s the bot remembers %q in the wrong place", session, m.Content.Text())
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		o.t.Errorf("the bot remembers %d messages, want %d:\n%s\nwant\n%s", len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (o *office) wrongWith(k *talk, answers []slacktwin.Message) (wrong []string) {
	at := map[string]int{}
	for i, a := range answers {
		if _, twice := at[a.Text]; twice {
			wrong = append(wrong, fmt.Sprintf("said twice: %q", a.Text))
		}
		at[a.Text] = i
	}
	for _, w := range k.said {
		if _, ok := at[w.answer]; !ok {
			wrong = append(wrong, fmt.Sprintf("never said: %q", w.answer))
		}
	}
	for _, a := range answers {
		if !slices.ContainsFunc(k.said, func(w words) bool { return w.answer == a.Text }) {
			wrong = append(wrong, fmt.Sprintf("nobody asked for: %q", a.Text))
		}
	}
	taken := o.taken()
	for i, first := range k.said {
		for _, second := range k.said[i+1:] {
			if taken[first.ts].surely.Before(taken[second.ts].maybe) && at[first.answer] > at[second.answer] {
				wrong = append(wrong, fmt.Sprintf("out of order: %q after %q", first.answer, second.answer))
			}
		}
	}
	return wrong
}

// span is when the bot took a message: not before maybe, and not after surely. Messages that it could not take at once
// arrive again later, in any order.
type span struct{ maybe, surely time.Time }

// taken tells when each message was taken, by its ts, from the journal of deliveries.
func (o *office) taken() map[string]span {
	taken := map[string]span{}
	for _, d := range o.twin.Deliveries() {
		s, known := taken[d.TS]
		if !known || d.At.Before(s.maybe) {
			s.maybe = d.At
		}
		if end := d.At.Add(d.Took); d.Acked && (s.surely.IsZero() || end.Before(s.surely)) {
			s.surely = end
		}
		taken[d.TS] = s
	}
	return taken
}

func (o *office) transcript(k *talk, answers []slacktwin.Message) string {
	var b strings.Builder
	taken := o.taken()
	fmt.Fprintf(&b, "in %s, thread %s, was said:\n", k.channel, k.thread)
	for _, w := range k.said {
		s := taken[w.ts]
		fmt.Fprintf(&b, "  %s, taken between %s and %s, for %q\n", w.ts, s.maybe.Format(stamp), s.surely.Format(stamp), w.answer)
	}
	b.WriteString("and answered:\n")
	for _, a := range answers {
		fmt.Fprintf(&b, "  %s %q, metadata %s\n", a.TS, a.Text, a.Metadata)
	}
	return b.String()
}

const stamp = "15:04:05.000"

// checkAtRest looks for what is left over once everything is answered.
func (o *office) checkAtRest() {
	o.t.Helper()
	if lanes, places := o.leftovers(); lanes > 0 || places > 0 {
		o.t.Errorf("the bot's inbox has entries of %d conversations and its outbox of %d, want none", lanes, places)
	}
	for _, m := range o.said(general) {
		if m.Streaming {
			o.t.Errorf("message %s still grows", m.TS)
		}
	}
	for _, s := range o.twin.Statuses() {
		if s.State == "processing" {
			o.t.Errorf("thread %s still shows that the bot is working", s.ThreadTS)
		}
	}
}

func (o *office) traffic() string {
	var attempts, lost, posts, again int
	for _, d := range o.twin.Deliveries() {
		attempts++
		if !d.Acked {
			lost++
		}
	}
	for _, c := range o.twin.Calls() {
		switch c.Method {
		case "chat.postMessage":
			posts++
		case "conversations.replies", "conversations.history":
			again++
		}
	}
	return fmt.Sprintf("%d deliveries (%d not acknowledged), %d posts, %d look-ups of earlier ones", attempts, lost, posts, again)
}

// petition is a request for an approval, and what people make of it.
type petition struct {
	office  *office
	number  int
	service string
	dice    *rand.Rand
	thread  string
	card    string // its ts
	id      string
}

// The ways in which people decide.
const (
	approvedByOne = iota
	deniedByOne
	strangerFirst
	pressedTwice
	twoAtOnce
	waysToDecide
)

func crashAsk(t *testing.T, way transport, s size, seed uint64) {
	t.Parallel()
	o := newOffice(t, way, s.patience, "BOT_MODEL=demo")
	d := dice(seed, s.approvals+1000)
	o.mishaps(d, 2*s.approvals)
	var people sync.WaitGroup
	var petitions []*petition
	last := o.haunt(d, s.kills, func(n int) {
		for len(petitions) < s.approvals*(n+1)/(s.kills+1) {
			i := len(petitions)
			p := &petition{office: o, number: i, service: fmt.Sprintf("svc-%d", i), dice: dice(seed, i)}
			petitions = append(petitions, p)
			people.Go(p.run)
		}
	})
	people.Wait()
	if t.Failed() {
		o.showPetitions(petitions)
		return
	}
	last.stop()
	o.start().ready().stop()
	o.checkPetitions(petitions)
	o.checkAtRest()
	t.Logf("%d approvals, %d kills; %s", s.approvals, s.kills, o.traffic())
}

// run asks, waits for the card, decides and waits for the answer.
func (p *petition) run() {
	o := p.office
	var err error
	if p.thread, err = o.twin.Say(ada, general, "", o.mention("deploy "+p.service+" to staging")); err != nil {
		o.t.Error(err)
		return
	}
	if !o.await(func() bool { return p.findCard() }) {
		o.t.Errorf("%s: no card was shown in time", p.service)
		return
	}
	<-time.After(between(p.dice, 0, 500*time.Millisecond)) // people think before they press
	p.decide()
	if !o.await(func() bool { return p.outcome() != "" && len(o.saidIn(general, p.thread)) > 1 }) {
		o.t.Errorf("%s: decided, but no answer was seen in time", p.service)
	}
}

var requestID = regexp.MustCompile(`"value":"([2-9a-z]{20})"`)

func (p *petition) findCard() bool {
	for _, m := range p.office.saidIn(general, p.thread) {
		if found := requestID.FindSubmatch(compact(m.Blocks)); found != nil {
			p.card, p.id = m.TS, string(found[1])
			return true
		}
	}
	return false
}

func compact(raw json.RawMessage) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return b
}

func (p *petition) decide() {
	switch p.number % waysToDecide {
	case approvedByOne:
		p.press(grace, "approve")
	case deniedByOne:
		p.press(hedy, "deny")
	case strangerFirst:
		p.press(mallory, "approve")
		p.press(grace, "approve")
	case pressedTwice:
		p.together(func() { p.press(grace, "approve") }, func() { p.press(grace, "approve") })
	case twoAtOnce:
		p.together(func() { p.press(grace, "approve") }, func() { p.press(hedy, "deny") })
	}
}

func (p *petition) together(acts ...func()) {
	var done sync.WaitGroup
	for _, act := range acts {
		done.Go(act)
	}
	done.Wait()
}

// press presses a button as a person does: again after a moment if Slack says that it did not work, until it did or there
// is nothing more to press.
func (p *petition) press(who, action string) {
	for p.office.ctx.Err() == nil {
		begun := p.office.nextLife()
		err := p.office.twin.Click(p.office.ctx, who, general, p.card, action)
		if err == nil {
			p.office.stir() // what was decided runs now: a moment for a kill
		}
		if err == nil || p.outcome() != "" {
			return
		}
		select {
		case <-begun: // somebody says that the bot is back
		case <-time.After(300 * time.Millisecond):
		case <-p.office.ctx.Done():
		}
	}
	p.office.t.Errorf("%s: %s could not %s in time", p.service, who, action)
}

// outcome is what the card says has been decided: Approved, Denied, or "".
func (p *petition) outcome() string {
	for _, m := range p.office.saidIn(general, p.thread) {
		if m.TS != p.card {
			continue
		}
		for _, word := range []string{"Approved", "Denied", "Cancelled", "No answer"} {
			if strings.Contains(string(m.Blocks), `"`+word+": deploy") {
				return word
			}
		}
	}
	return ""
}

// checkPetitions compares what people decided with what people see and with what ran.
func (o *office) checkPetitions(petitions []*petition) {
	o.t.Helper()
	ran := o.deployments()
	lines := 0
	for _, p := range petitions {
		lines += len(ran[p.id])
		if wrong := p.wrong(ran[p.id]); len(wrong) > 0 {
			o.t.Errorf("%s: %s\n%s", p.service, strings.Join(wrong, "; "), p.transcript())
		}
	}
	total := 0
	for _, l := range ran {
		total += len(l)
	}
	if total != lines {
		o.t.Errorf("%d deployments ran, only %d of them under a request of these", total, lines)
	}
	for session, history := range o.histories() {
		if roles := rolesOf(history); roles != "user assistant assistant tool assistant" {
			o.t.Errorf("in %s the bot remembers messages of: %s; want the question, the call, the request, its result, the answer", session, roles)
		}
	}
	if got, want := len(o.said(general)), 2*len(petitions); got != want {
		o.t.Errorf("the bot said %d things, want %d: a card and an answer for each", got, want)
	}
}

func rolesOf(history []llm.Message) string {
	var roles []string
	for _, m := range history {
		roles = append(roles, string(m.Role))
	}
	return strings.Join(roles, " ")
}

func (p *petition) wrong(ran []string) (wrong []string) {
	outcome := p.outcome()
	wants := map[int]string{approvedByOne: "Approved", deniedByOne: "Denied", strangerFirst: "Approved", pressedTwice: "Approved"}
	if want, ok := wants[p.number%waysToDecide]; ok && outcome != want {
		wrong = append(wrong, fmt.Sprintf("the card says %q, want %q", outcome, want))
	}
	want := []string(nil)
	if outcome == "Approved" {
		want = []string{fmt.Sprintf(`{"service":%q,"environment":"staging"}`, p.service)}
	}
	if !slices.Equal(ran, want) {
		wrong = append(wrong, fmt.Sprintf("%s, and what ran is %q, want %q", outcome, ran, want))
	}
	replies := p.office.saidIn(general, p.thread)
	if len(replies) != 2 || replies[0].TS != p.card {
		return append(wrong, fmt.Sprintf("%d replies, want the card and the answer", len(replies)))
	}
	deployed := strings.Contains(replies[1].Text, p.service+" is deployed to staging")
	if deployed != (outcome == "Approved") {
		wrong = append(wrong, fmt.Sprintf("%s, and the answer is %q", outcome, replies[1].Text))
	}
	return wrong
}

// deployments are the arguments of what ran, by request.
func (o *office) deployments() map[string][]string {
	o.t.Helper()
	log, err := os.ReadFile(o.path("deployed"))
	if err != nil && !os.IsNotExist(err) {
		o.t.Fatal(err)
	}
	ran := map[string][]string{}
	for line := range strings.Lines(string(log)) {
		id, arguments, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		ran[id] = append(ran[id], arguments)
	}
	return ran
}

func (p *petition) transcript() string {
	var b strings.Builder
	fmt.Fprintf(&b, "request %s in thread %s:\n", p.id, p.thread)
	for _, m := range p.office.twin.Thread(general, p.thread) {
		fmt.Fprintf(&b, "  %s %s: %q, metadata %s\n", m.TS, m.User, m.Text, m.Metadata)
	}
	return b.String()
}

func (o *office) showPetitions(petitions []*petition) {
	for _, p := range petitions {
		if p.outcome() == "" || len(o.saidIn(general, p.thread)) != 2 {
			o.t.Log(p.transcript())
		}
	}
}
