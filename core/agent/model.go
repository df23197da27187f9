package agent

import (
	"context"
	"errors"
	"time"

	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/llm"
)

// Between tries of a model that is unavailable for the moment. A provider's own Retry-After, up to patience, comes first.
var pauses = []time.Duration{500 * time.Millisecond, 2 * time.Second}

const patience = 20 * time.Second

// complete asks the model, again after a transient failure as long as nothing of the answer was shown.
func (a *Agent) complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	for try := 0; ; try++ {
		resp, shown, err := a.completeOnce(ctx, req)
		if err == nil && resp.Finish == llm.FinishError {
			err = &llm.Error{Category: llm.Unavailable, Message: "the model broke off in the middle of its answer"}
		}
		if err == nil || shown || try >= len(pauses) || !transient(err) {
			return resp, err
		}
		pause := pauses[try]
		if e, ok := errors.AsType[*llm.Error](err); ok && e.RetryAfter > 0 {
			pause = e.RetryAfter
		}
		if pause > patience || !sleep(ctx, pause) {
			return resp, err
		}
	}
}

func (a *Agent) completeOnce(ctx context.Context, req llm.Request) (resp llm.Response, shown bool, err error) {
	limited, cancel := context.WithTimeout(ctx, a.ModelTimeout)
	defer cancel()
	if s, ok := a.Provider.(llm.Streamer); ok {
		resp, err = s.Stream(limited, req, func(text string) {
			shown = true
			graph.Emit(ctx, chat.Delta{Text: text})
		})
	} else {
		resp, err = a.Provider.Complete(limited, req)
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = &llm.Error{Category: llm.Unavailable, Message: "the model did not answer in time", Cause: err}
	}
	return resp, shown, err
}

// transient follows the retry classification of llm-provider §7.
func transient(err error) bool {
	switch llm.CategoryOf(err) {
	case llm.Unavailable, llm.RateLimit, llm.ModelNotLoaded:
		return true
	}
	return false
}

// sleep waits, and reports whether it could wait to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
