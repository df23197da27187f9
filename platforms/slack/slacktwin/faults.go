package slacktwin

import "time"

// Fault is one scripted mishap, of a Web API method or of a delivery: one of Method and Event is set.
type Fault struct {
	Method string // "chat.postMessage"; "*" is any
	Event  string // type of the event or interaction: "message", "app_mention", "block_actions"; "*" is any
	Skip   int    // so many calls or deliveries pass first
	Times  int    // how many are hit; 0 means 1, -1 all

	// Of a method. Status and Error make the answer: Status 0 is 200; an Error is {"ok":false}. A Status without an Error
	// has a body that is not JSON. Without either, the call is answered as it would be.
	Status     int
	Error      string
	RetryAfter time.Duration // whole seconds; 0 sends no header
	Commit     bool          // it is done nevertheless, and then answered so: the caller cannot know
	Drop       bool          // the connection is closed without an answer

	// Of both: wait so long before it is done or delivered. With Late: after it is done, before it is answered.
	Delay time.Duration
	Late  bool

	// Of a delivery. Hold, Lose and Duplicate hit first attempts only.
	Duplicate int  // so many copies more
	Hold      bool // until another delivery has been made, or Idle is called: it arrives out of order
	Lose      bool // never delivered
	LoseAck   bool // delivered, but the acknowledgement is lost, so that it comes again
}

// Fault scripts one fault. Faults apply in the order in which they were given; one call or delivery takes at most one.
func (t *Twin) Fault(f Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	t.faults = append(t.faults, &f)
}

// ClearFaults forgets the faults that have not happened.
func (t *Twin) ClearFaults() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = nil
}

// methodFault takes the fault of a call, nil if there is none.
func (t *Twin) methodFault(method string) *Fault {
	return t.takeFault(func(f *Fault) bool { return f.Method == method || f.Method == "*" })
}

// deliveryFault takes the fault of a delivery, nil if there is none.
func (t *Twin) deliveryFault(e *envelope, attempt int) *Fault {
	return t.takeFault(func(f *Fault) bool {
		if f.Event != e.typ && f.Event != "*" {
			return false
		}
		return attempt == 0 || f.LoseAck || f.Delay > 0
	})
}

func (t *Twin) takeFault(hits func(*Fault) bool) *Fault {
	for _, f := range t.faults {
		if f.Times == 0 || !hits(f) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 {
			f.Times--
		}
		return f
	}
	return nil
}
