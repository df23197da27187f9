package playground

import (
	"fmt"
	"net/http"
	"time"
)

// events is a stream of server-sent events: the version now, then each new one, as long as the page listens. A page that
// connects again gets the version at once and thereby learns whether it missed something.
func (p *Playground) events(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	// A server with a write timeout would cut the stream; one without deadlines does not mind.
	_ = out.SetWriteDeadline(time.Time{})
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")

	alive := time.NewTicker(p.heartbeat)
	defer alive.Stop()
	for {
		version, changed, live := p.ticks.now()
		if !live {
			return
		}
		if _, err := fmt.Fprintf(w, "event: tick\ndata: %d\n\n", version); err != nil {
			return
		}
		if out.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-alive.C:
		case <-r.Context().Done():
			return
		}
	}
}
