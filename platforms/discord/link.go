package discord

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// link is the connection of a gateway session, with the WebSocket frames in the clear. It is where one can see what
// discordgo does not tell or does not do in time: how often the heart beats, that a beat was not answered, that Discord asks
// to reconnect, that the session is invalid, the code of a close frame. It ends the connection then, before discordgo acts on
// it: discordgo would deadlock, identify without a pause, or resume what is invalid.
//
// No close frame goes out: Discord keeps a session whose connection just ends, and drops one closed with 1000 or 1001 (doc
// events/gateway).
type link struct {
	net.Conn
	began time.Time
	done  chan struct{} // closed when the connection has ended

	in   frames // of the reading goroutine
	halt error  // of the reading goroutine: what it reads from now on

	mu       sync.Mutex
	ended    bool
	why      ending
	interval time.Duration // between heartbeats; 0 until HELLO
	upgraded bool          // WebSocket frames go out
	beat     time.Time     // of the last heartbeat that was not answered; zero if all were
}

// ending is why a connection ended.
type ending struct {
	Code      int  // of Discord's close frame, 0 without one
	Reconnect bool // Discord asked for it
	Invalid   bool // the session is not to be used any more
	Resumable bool // with Invalid: or perhaps it is
	Err       error
}

func (e ending) Error() string {
	switch {
	case e.Code != 0:
		return fmt.Sprintf("Discord closed the connection with code %d", e.Code)
	case e.Reconnect:
		return "Discord asked to reconnect"
	case e.Invalid:
		return "Discord called the session invalid"
	case e.Err != nil:
		return e.Err.Error()
	}
	return "the connection ended"
}

const (
	helloWithin = 10 * time.Second
	silence     = 5 * time.Second // more than two heartbeats, before a link is dead
	maxControl  = 4 << 10         // the longest payload that is looked into, in bytes
)

var (
	errSilent    = errors.New("nothing was heard for two heartbeats")
	errNoAnswer  = errors.New("a heartbeat was not answered")
	errOurEnd    = errors.New("closed at our end")
	errEndedLink = errors.New("discord: the connection has ended")
)

func newLink(c net.Conn) *link {
	return &link{Conn: c, began: time.Now(), done: make(chan struct{})}
}

// end closes the connection; the first reason stays.
func (l *link) end(why ending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	why.Code = l.why.Code
	l.ended, l.why = true, why
	_ = l.Conn.Close()
	close(l.done)
}

// reason is why it ended, after done.
func (l *link) reason() ending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// Close ends the connection at our end.
func (l *link) Close() error {
	l.end(ending{Err: errOurEnd})
	return nil
}

// patience is how long nothing may be heard.
func (l *link) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.interval == 0 {
		return helloWithin
	}
	return 2*l.interval + silence
}

func (l *link) Read(p []byte) (int, error) {
	if l.halt != nil {
		return 0, l.halt
	}
	if err := l.Conn.SetReadDeadline(time.Now().Add(l.patience())); err != nil {
		l.end(ending{Err: err})
		return 0, err
	}
	n, err := l.Conn.Read(p)
	if n > 0 {
		if pass, stopped := l.in.feed(p[:n], l.frame); stopped {
			l.halt = errEndedLink
			n, err = pass, nil
		}
	}
	if err != nil {
		why := err
		if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
			why = errSilent
		}
		l.end(ending{Err: why})
	}
	if n == 0 && err == nil && l.halt != nil {
		return 0, l.halt
	}
	return n, err
}

// opcodes of WebSocket (RFC 6455, section 5.2).
const (
	frameText  = 1
	frameClose = 8
)

// opcodes of the gateway (doc topics/opcodes-and-status-codes).
const (
	opHeartbeat = 1
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAnswer    = 11
)

// frame looks into a frame from Discord and reports whether the connection ends with it, unseen by discordgo.
func (l *link) frame(opcode byte, payload []byte) (stop bool) {
	switch opcode {
	case frameClose:
		if len(payload) >= 2 {
			l.note(func() { l.why.Code = int(binary.BigEndian.Uint16(payload)) })
		}
		return false
	case frameText:
		return l.op(payload)
	}
	return false
}

// note keeps something that is known before the connection ends.
func (l *link) note(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		f()
	}
}

func (l *link) op(payload []byte) (stop bool) {
	var told struct {
		Op   int             `json:"op"`
		Data json.RawMessage `json:"d"`
	}
	if decode(payload, &told) != nil {
		return false
	}
	switch told.Op {
	case opHello:
		var hello struct {
			Interval float64 `json:"heartbeat_interval"`
		}
		if decode(told.Data, &hello) == nil && hello.Interval > 0 && hello.Interval < 3600_000 {
			l.note(func() { l.interval = time.Duration(hello.Interval) * time.Millisecond })
		}
	case opAnswer:
		l.note(func() { l.beat = time.Time{} })
	case opReconnect:
		l.end(ending{Reconnect: true})
		return true
	case opInvalid:
		l.end(ending{Invalid: true, Resumable: bytes.Equal(bytes.TrimSpace(told.Data), []byte("true"))})
		return true
	}
	return false
}

// Write sends what discordgo writes, one frame at a time, except its close frames.
func (l *link) Write(p []byte) (int, error) {
	if l.isFrame(p) {
		switch {
		case p[0]&0x0f == frameClose:
			l.end(ending{Err: errOurEnd})
			return len(p), nil
		case opOf(p) == opHeartbeat && !l.beats():
			l.end(ending{Err: errNoAnswer})
			return 0, errEndedLink
		}
	}
	n, err := l.Conn.Write(p)
	if err != nil {
		l.end(ending{Err: err})
	}
	return n, err
}

// isFrame tells whether p is a frame; the first that is written is the request to upgrade.
func (l *link) isFrame(p []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.upgraded
	l.upgraded = l.upgraded || bytes.HasSuffix(p, []byte("\r\n\r\n"))
	return was && len(p) > 0
}

// beats notes a heartbeat, and reports false if the one before was not answered in its time.
func (l *link) beats() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.beat.IsZero() && now.Sub(l.beat) > l.interval/2 {
		return false
	}
	if l.beat.IsZero() {
		l.beat = now
	}
	return true
}

// opOf is the gateway's opcode in a masked frame that begins with it, as discordgo's do; -1 if there is none.
func opOf(frame []byte) int {
	head := 2
	if len(frame) < head {
		return -1
	}
	switch frame[1] & 0x7f {
	case 126:
		head += 2
	case 127:
		head += 8
	}
	begin := []byte(`{"op":`)
	if frame[1]&0x80 == 0 || len(frame) < head+4+len(begin)+2 {
		return -1
	}
	mask, payload := frame[head:head+4], frame[head+4:]
	plain := make([]byte, len(begin)+2)
	for i := range plain {
		plain[i] = payload[i] ^ mask[i%4]
	}
	op, after := plain[len(begin)], plain[len(begin)+1]
	if !bytes.HasPrefix(plain, begin) || op < '0' || op > '9' || after != ',' {
		return -1
	}
	return int(op - '0')
}

// frames follows a stream from a server: the answer to an upgrade, then frames.
type frames struct {
	open    bool
	last    []byte // up to four bytes at the end of what has been read of the answer
	head    []byte // of the frame that is being read
	payload []byte // its beginning
	left    uint64 // of its payload
	inside  bool   // its head is complete
}

// feed reads on. Each whole frame whose payload is at most maxControl is given to look; if that says stop, feed returns how
// much of b comes before the frame.
func (f *frames) feed(b []byte, look func(opcode byte, payload []byte) (stop bool)) (pass int, stopped bool) {
	begin := 0 // of the frame that is being read, in b
	for i := 0; i < len(b); {
		switch {
		case !f.open:
			f.last = append(f.last, b[i])
			f.last = f.last[max(0, len(f.last)-4):]
			f.open = string(f.last) == "\r\n\r\n"
			i++
			begin = i
		case !f.inside:
			if len(f.head) == 0 {
				begin = i
			}
			f.head = append(f.head, b[i])
			i++
			f.inside = f.headComplete()
		default:
			n := int(min(f.left, uint64(len(b)-i)))
			if len(f.payload) <= maxControl {
				f.payload = append(f.payload, b[i:i+min(n, maxControl+1-len(f.payload))]...)
			}
			f.left -= uint64(n)
			i += n
		}
		if f.inside && f.left == 0 {
			stop := len(f.payload) <= maxControl && look(f.head[0]&0x0f, f.payload)
			f.head, f.payload, f.inside = f.head[:0], f.payload[:0], false
			if stop {
				return begin, true
			}
			begin = i
		}
	}
	return len(b), false
}

// headComplete reads the length, once all of the head is there.
func (f *frames) headComplete() bool {
	if len(f.head) < 2 {
		return false
	}
	switch n := f.head[1] & 0x7f; n {
	case 126:
		if len(f.head) < 4 {
			return false
		}
		f.left = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		if len(f.head) < 10 {
			return false
		}
		f.left = binary.BigEndian.Uint64(f.head[2:])
	default:
		f.left = uint64(n)
	}
	return true
}
