// Package browsertest drives a page in a real browser, headless: it finds elements by their data-testid, waits for what
// is to be seen, and clicks and types as a person does, with the mouse and the keyboard. Every wait ends as soon as
// the page shows it. An exception in the page, a refused script or an error on its console fails the test.
//
// Elements are named by a path of test ids, from outside in: "thread message" is a message in the thread. It knows nothing
// of what the page is about.
package browsertest

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a wait lasts. It is generous as many tests may share few processors.
const patience = 30 * time.Second

//go:embed wait.js
var wait string

// Browser is one tab. Its methods fail the test if what they want is not there in time; they are for one goroutine.
type Browser struct {
	t   testing.TB
	ctx context.Context
}

// Start opens a browser with an empty tab of 1280 by 800 and closes it when the test ends. It skips the test if no
// Chromium is installed.
func Start(t testing.TB) *Browser {
	t.Helper()
	program := installed()
	if program == "" {
		t.Skip("no chromium found: install the chromium package to run the browser test")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1280, 800), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("no-proxy-server", true))
	allocated, free := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(free)
	ctx, end := chromedp.NewContext(allocated)
	t.Cleanup(end)
	b := &Browser{t: t, ctx: ctx}
	b.do("start the browser", chromedp.EmulateViewport(1280, 800))
	b.watch()
	return b
}

// installed returns the program to run, or "".
func installed() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// watch fails the test for what goes wrong in the page. Refused requests are part of many tests and no failure.
func (b *Browser) watch() {
	ctx, stop := context.WithCancel(b.ctx)
	messages := chromedp.Console(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == chromedp.ConsoleError && m.Source != "network" {
				b.t.Errorf("the page complains at %s:%d: %s", m.URL, m.Line+1, m)
			}
		}
	}()
	b.t.Cleanup(func() {
		stop()
		<-ended
	})
}

// Open goes to an address and waits until it is loaded.
func (b *Browser) Open(url string) {
	b.t.Helper()
	b.do("open "+url, chromedp.Navigate(url))
}

// Dark makes the page believe that its reader likes it dark.
func (b *Browser) Dark() {
	b.t.Helper()
	b.do("prefer dark", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
		})
		return err
	}))
}

// Resize gives the page another size, in pixels.
func (b *Browser) Resize(width, height int64) {
	b.t.Helper()
	b.do("resize", chromedp.EmulateViewport(width, height))
}

// WaitText waits until an element at path shows text.
func (b *Browser) WaitText(path, text string) {
	b.t.Helper()
	b.await(fmt.Sprintf("%q to show %q", path, text), "shows", path, text)
}

// WaitNoText waits until no element at path shows text any more.
func (b *Browser) WaitNoText(path, text string) {
	b.t.Helper()
	b.await(fmt.Sprintf("%q to show %q no more", path, text), "lacks", path, text)
}

// WaitGone waits until nothing is to be seen at path.
func (b *Browser) WaitGone(path string) {
	b.t.Helper()
	b.await(fmt.Sprintf("%q to be gone", path), "lacks", path, "")
}

// WaitCount waits until n elements are to be seen at path.
func (b *Browser) WaitCount(path string, n int) {
	b.t.Helper()
	b.await(fmt.Sprintf("%d of %q", n, path), "counts", path, fmt.Sprint(n))
}

// ClickTestID waits until the first element at path can be reached by the mouse, and clicks it.
func (b *Browser) ClickTestID(path string) {
	b.t.Helper()
	b.click(path, "")
}

// ClickText is ClickTestID for the first element at path that shows text.
func (b *Browser) ClickText(path, text string) {
	b.t.Helper()
	b.click(path, text)
}

func (b *Browser) click(path, text string) {
	b.t.Helper()
	x, y := b.point(path, text)
	b.do("click "+path, chromedp.MouseEvent(chromedp.MouseMoved, x, y), chromedp.MouseClickXY(x, y))
}

// Hover moves the mouse over the first element at path that shows text.
func (b *Browser) Hover(path, text string) {
	b.t.Helper()
	x, y := b.point(path, text)
	b.do("hover over "+path, chromedp.MouseEvent(chromedp.MouseMoved, x, y))
}

func (b *Browser) point(path, text string) (x, y float64) {
	b.t.Helper()
	at := b.await(fmt.Sprintf("%q with %q to be clickable", path, text), "clickable", path, text)
	if _, err := fmt.Sscanf(at, "%g %g", &x, &y); err != nil {
		b.t.Fatalf("the place of %q is %q: %v", path, at, err)
	}
	return x, y
}

// Type clicks the field at path and types text. A line end is the Enter key.
func (b *Browser) Type(path, text string) {
	b.t.Helper()
	b.ClickTestID(path)
	b.do("type", chromedp.KeyEvent(strings.ReplaceAll(text, "\n", kb.Enter)))
}

// Press presses a key where the focus is: kb.Enter, kb.Escape and so on.
func (b *Browser) Press(key string) {
	b.t.Helper()
	b.do("press a key", chromedp.KeyEvent(key))
}

// Attach chooses files in the file input at path, which may be hidden.
func (b *Browser) Attach(path string, files ...string) {
	b.t.Helper()
	b.do("attach to "+path, chromedp.SetUploadFiles(chromedp.CSS(selector(path)), files, chromedp.NodeReady))
}

// Text returns what the element at path shows now, "" if it is not there.
func (b *Browser) Text(path string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
		fmt.Sprintf("document.querySelector(%s)?.innerText ?? ''", quote(selector(path)))))
	if err != nil {
		b.t.Fatalf("read %q: %v", path, err)
	}
	return text
}

// Screenshot writes what is to be seen to a PNG file.
func (b *Browser) Screenshot(file string) {
	b.t.Helper()
	image, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(file, image, 0o644)
	}
	if err != nil {
		b.t.Fatalf("take a screenshot: %v", err)
	}
}

func (b *Browser) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	// The browser ends with the context that first runs something, so that this must not be the one that times out.
	if err := chromedp.Do(b.ctx); err != nil {
		b.t.Fatalf("start the browser: %v", err)
	}
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// await runs wait.js and returns what it found.
func (b *Browser) await(what, probe, path, text string) string {
	b.t.Helper()
	call := fmt.Sprintf("(%s)(%s, %s, %s, %d)", wait, quote(probe), quote(selector(path)), quote(text), patience.Milliseconds())
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](call,
		func(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }))
	if err != nil {
		b.t.Fatalf("waiting for %s: %v\nthe page shows:\n%s", what, reason(err), cut(b.Text("")))
	}
	return found
}

// cut shortens what a failure says of the page to 4,000 bytes: its end, where the newest is.
func cut(text string) string {
	const most = 4000
	if len(text) <= most {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-most:], "")
}

// reason is the text of an exception of the page, without its stack.
func reason(err error) string {
	if thrown, ok := errors.AsType[*chromedp.ExceptionError](err); ok && thrown.Exception != nil {
		first, _, _ := strings.Cut(thrown.Exception.Description, "\n")
		return cmp.Or(first, err.Error())
	}
	return err.Error()
}

// selector is the CSS of a path of test ids; the empty path is the whole page.
func selector(path string) string {
	if path == "" {
		return "body"
	}
	var css []string
	for id := range strings.FieldsSeq(path) {
		css = append(css, "[data-testid="+quote(id)+"]")
	}
	return strings.Join(css, " ")
}

// quote writes a string as JavaScript and CSS read it.
func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return string(text)
}
