package slack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

func TestFilesArriveAndAreFetched(t *testing.T) {
	w := newWorld(t, setup{})
	w.say("UALICE", "DALICE", "", "look",
		slacktwin.Upload{Name: "notes.txt", MediaType: "text/plain", Content: []byte("some notes")},
		slacktwin.Upload{Name: "page.html", MediaType: "text/html", Content: []byte("<p>a page</p>")},
		slacktwin.Upload{Name: "plan.pdf", MediaType: "application/pdf", External: true},
		slacktwin.Upload{Name: "shared.txt", MediaType: "text/plain", Content: []byte("from a partner"), Connect: true})
	files := only[platforms.Message](w).Files
	if len(files) != 4 {
		t.Fatalf("got %+v", files)
	}
	for i, want := range []string{"some notes", "<p>a page</p>", "", "from a partner"} {
		if want == "" {
			if files[i].Problem == "" {
				t.Errorf("%d: an external file without a problem: %+v", i, files[i])
			}
			continue
		}
		r, err := w.a.Fetch(t.Context(), files[i], 100)
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		got, err := io.ReadAll(r)
		if string(got) != want || err != nil {
			t.Errorf("%d: got %q, %v, want %q", i, got, err, want)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%d: close: %v", i, err)
		}
	}
	if files[0].Name != "notes.txt" || files[0].MediaType != "text/plain" || files[0].Size != 10 {
		t.Errorf("got %+v", files[0])
	}
	if _, err := w.a.Fetch(t.Context(), files[0], 9); failure(err) != "refused too_large" {
		t.Errorf("too large by its own word: got %v", err)
	}
	if _, err := w.a.Fetch(t.Context(), files[2], 100); failure(err) != "refused no_url" {
		t.Errorf("external: got %v", err)
	}
	files[0].Size = 0
	if r, err := w.a.Fetch(t.Context(), files[0], 10); err != nil {
		t.Errorf("exactly the limit: got %v", err)
	} else if got, err := io.ReadAll(r); len(got) != 10 || err != nil {
		t.Errorf("exactly the limit: got %q, %v", got, err)
	}
}

func TestWhatIsWrongWithAFile(t *testing.T) {
	tests := map[string]struct {
		file string
		want string // part of the problem
	}{
		"good":            {`{"id":"F1","url_private":"https://files.slack.com/x"}`, ""},
		"by id":           {`{"id":"F1","file_access":"check_file_info"}`, ""},
		"external":        {`{"id":"F1","is_external":true,"url_private":"https://drive.example.com/x"}`, "outside Slack"},
		"external mode":   {`{"id":"F1","mode":"external","url_private":"https://drive.example.com/x"}`, "outside Slack"},
		"deleted":         {`{"id":"F1","mode":"tombstone"}`, "deleted"},
		"hidden":          {`{"id":"F1","mode":"hidden_by_limit"}`, "limit"},
		"denied":          {`{"id":"F1","file_access":"access_denied"}`, "does not let me"},
		"nowhere":         {`{"id":"F1"}`, "where it is"},
		"odd types":       {`{"id":7,"size":"big","url_private":[]}`, "where it is"},
		"check of what":   {`{"file_access":"check_file_info"}`, "where it is"},
		"a negative size": {`{"id":"F1","size":-5,"url_private":"https://files.slack.com/x"}`, ""},
	}
	for name, tt := range tests {
		var f file
		if err := decode([]byte(tt.file), &f); err != nil {
			t.Fatal(err)
		}
		got := f.attachment()
		if !strings.Contains(got.Problem, tt.want) || (got.Problem == "") != (tt.want == "") || (got.Token == "") != (tt.want != "") || got.Size < 0 {
			t.Errorf("%s: got %+v, want a problem with %q", name, got, tt.want)
		}
	}
}

// fileAt is a file behind url.
func fileAt(url string) platforms.File {
	token, _ := json.Marshal(fileToken{URL: url})
	return platforms.File{MediaType: "text/plain", Token: string(token)}
}

func TestTheTokenGoesToSlackOnly(t *testing.T) {
	leaked := ""
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked = r.Header.Get("Authorization") + " " + r.URL.Path
	}))
	defer foreign.Close()
	api := http.NewServeMux()
	api.HandleFunc("/redirected", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, foreign.URL+"/away", http.StatusFound)
	})
	a := adapterOf(t, api)
	for _, url := range []string{
		foreign.URL + "/x", "http://files.slack.com/x", "https://slack.com.evil.example/x", "https://evilslack.com/x",
		"https://slack.com@evil.example/x", "file:///etc/passwd", "::", "/relative", "",
	} {
		_, err := a.Fetch(t.Context(), fileAt(url), 10)
		if got := failure(err); got != "refused foreign_url" && url != "" {
			t.Errorf("%s: got %q", url, got)
		}
		if err == nil {
			t.Errorf("%s: fetched", url)
		}
	}
	if _, err := a.Fetch(t.Context(), fileAt(a.base.String()+"redirected"), 10); failure(err) != "refused sign_in_page" {
		t.Errorf("a redirect: got %v", err)
	}
	if leaked != "" {
		t.Errorf("leaked %s", leaked)
	}
	for _, url := range []string{"https://slack.com/x", "https://files.slack.com/x", "https://FILES.slack.com:443/x", "https://files.slack-gov.com/x"} {
		u := mustParse(t, url)
		if !a.mayReceiveToken(u) {
			t.Errorf("%s is refused", url)
		}
	}
}

func TestWhatAFailedFetchCameTo(t *testing.T) {
	api := http.NewServeMux()
	api.HandleFunc("/signin", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<html>Sign in</html>")
	})
	api.HandleFunc("/redirects", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/signin?redir=%2Fredirects", http.StatusFound)
	})
	api.HandleFunc("/long", func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush() // no Content-Length
		fmt.Fprint(w, strings.Repeat("x", 100))
	})
	api.HandleFunc("/told", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, strings.Repeat("x", 100)) })
	api.HandleFunc("/gone", http.NotFound)
	api.HandleFunc("/busy", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(429)
	})
	api.HandleFunc("/down", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) })
	api.HandleFunc("/broken", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	a := adapterOf(t, api)
	for path, want := range map[string]string{
		"signin":    "refused sign_in_page",
		"redirects": "refused sign_in_page",
		"told":      "refused too_large",
		"long":      "refused too_large",
		"gone":      "refused http_404",
		"busy":      "slow_down ratelimited",
		"down":      "unreachable http_503",
		"broken":    "unreachable ",
	} {
		r, err := a.Fetch(t.Context(), fileAt(a.base.String()+path), 99)
		if err == nil {
			var got []byte
			got, err = io.ReadAll(r)
			if len(got) != 99 {
				t.Errorf("%s: read %d bytes, want the limit of 99", path, len(got))
			}
			_ = r.Close()
		}
		if got := failure(err); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
		if err != nil && strings.Contains(err.Error(), a.base.Host+"/") {
			t.Errorf("%s: the error tells the address: %v", path, err)
		}
	}
}

func TestGroupsAreBelievedForAMinute(t *testing.T) {
	w, clock := clocked(t, setup{})
	w.AddGroup("SOPS", "UALICE")
	in := func(group, user string) bool {
		t.Helper()
		ok, err := w.a.InGroup(t.Context(), group, platforms.UserID(user))
		if err != nil {
			t.Errorf("%s in %s: %v", user, group, err)
		}
		return ok
	}
	if !in("SOPS", "T0TWIN/UALICE") || in("SOPS", "T0TWIN/UBOB") || in("SOPS", "T0OTHER/UALICE") {
		t.Error("alice of ours is in the group, and nobody else")
	}
	if n := w.called("usergroups.users.list"); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	w.AddGroup("SOPS", "UBOB")
	clock.Advance(groupsFor - time.Second)
	if in("SOPS", "T0TWIN/UBOB") {
		t.Error("asked again too early")
	}
	clock.Advance(time.Second)
	if !in("SOPS", "T0TWIN/UBOB") {
		t.Error("not asked again after a minute")
	}
	if ok, err := w.a.InGroup(t.Context(), "SNONE", "T0TWIN/UBOB"); ok || err == nil {
		t.Errorf("an unknown group: got %v, %v", ok, err)
	}
	for _, user := range []platforms.UserID{"", "UBOB", "/UBOB", "T0TWIN/"} {
		if ok, err := w.a.InGroup(t.Context(), "SOPS", user); ok || err == nil {
			t.Errorf("%q: got %v, %v", user, ok, err)
		}
	}
	w.Fault(slacktwin.Fault{Method: "usergroups.users.list", Status: 503})
	clock.Advance(groupsFor)
	if ok, err := w.a.InGroup(t.Context(), "SOPS", "T0TWIN/UBOB"); ok || err == nil {
		t.Errorf("nobody knows: got %v, %v", ok, err)
	}
}
