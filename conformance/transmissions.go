package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
)

// transmissions drives the cases of the harness suite through a synthetic transport: it takes a payload apart, hands it
// to the harness, and gives the result the form that a caller would see.
func (r *run) transmissions(ctx context.Context) error {
	h := r.c.mapping("harness")
	mode := harness.Mode(h.text("mode"))
	if mode != harness.Sessioned && mode != harness.Stateless {
		return invalid(h.at("mode"), "want sessioned or stateless, got %q", mode)
	}
	hand := r.parts.harness(harness.New(r.engine, mode, harness.Options{Coordinator: r.coordinate(h)}), r.bench)
	if len(r.c.reader.problems) > 0 {
		return nil
	}
	for _, tx := range r.c.list("transmissions") {
		in := r.transmission(tx)
		var result harness.Result
		t, err := r.during(ctx, tx.text("name"), in.SessionID, func(ctx context.Context) { result = hand.Handle(ctx, in) })
		if err != nil {
			return err
		}
		t.result, t.supplied = result, in.SessionID
		r.turns = append(r.turns, t)
		r.expect(ctx, t, tx.mapping("expected"), transmissionExpectations)
	}
	return nil
}

// transmission takes a payload apart. session_id, invocation_id and signal_id are what their names say; a key that
// names a declared field is input to it; the rest is the transport's own.
func (r *run) transmission(tx *mapping) harness.Transmission {
	payload := tx.mapping("payload")
	in := harness.Transmission{
		Intent: harness.Intent(tx.text("dispatch_intent")), SessionID: payload.text("session_id"),
		InvocationID: r.placeholder(payload, "invocation_id"), SignalID: payload.text("signal_id"),
		Signal: tx.raws("signal_payload"),
	}
	for _, key := range payload.keys() {
		v, _ := payload.value(key)
		if _, declared := r.fields[key]; declared {
			in.Input = append(in.Input, graph.RawChange(key, asJSON(v)))
		}
	}
	return in
}

// outbound is what the synthetic transport would send back.
func outbound(ctx context.Context, res harness.Result) (map[string]any, error) {
	switch res.Shape {
	case harness.CompletionResponse:
		state, err := res.Outcome.State.JSON(ctx)
		out := make(map[string]any, len(state))
		for field, raw := range state {
			out[field] = raw
		}
		return out, err
	case harness.SuspendedAcknowledgment:
		return map[string]any{"invocation_id": res.Outcome.InvocationID, "descriptor": res.Outcome.Descriptor}, nil
	case harness.ErrorResponse:
		if res.Failure == nil {
			return nil, errors.New("an error response says nothing about its error")
		}
		return map[string]any{
			"category": res.Failure.Category, "bucket": res.Failure.Bucket, "diagnostic_message": res.Failure.Diagnostic,
			"intervention_required": res.Failure.InterventionRequired(), "retry_safe": res.Failure.RetrySafe(),
			"user_action_required": res.Failure.ActionRequired(),
		}, nil
	}
	return nil, fmt.Errorf("there is no shape %q", res.Shape)
}

// transmissionExpectations are the expected keys of the harness suite (header of its first file).
var transmissionExpectations = map[string]expectation{
	"dispatch_path": func(_ context.Context, _ *run, t *turn, want any) error { return pathIs(t.result.Path, want) },
	"invoke_args":   invokeArgs,
	"invoke_outcome": func(_ context.Context, _ *run, t *turn, want any) error {
		if err := statusIs(t.status(), want); err != nil {
			return fmt.Errorf("the engine: %w", err)
		}
		return statusIs(resultStatus(t.result), want)
	},
	"final_state": func(ctx context.Context, _ *run, t *turn, want any) error {
		return stateIs(ctx, t.result.Outcome.State, want)
	},
	"descriptor": func(_ context.Context, _ *run, t *turn, want any) error {
		return descriptorIs(t.result.Outcome.Descriptor, want)
	},
	"descriptor_read_from_outcome": func(_ context.Context, _ *run, t *turn, want any) error {
		return truth(t.isSubscribed(), want)
	},
	"signal_subscription_registered": func(_ context.Context, _ *run, t *turn, want any) error {
		return truth(t.isSubscribed(), want)
	},
	"harness_signal_subscription_registered": func(_ context.Context, _ *run, t *turn, want any) error {
		return truth(t.isSubscribed(), want)
	},
	"harness_did_not_block": func(ctx context.Context, r *run, t *turn, want any) error {
		return truth(r.didNotBlock(ctx, t), want)
	},
	"outbound_shape": func(_ context.Context, _ *run, t *turn, want any) error {
		return must(string(t.result.Shape) == want, "got %q, want %s", t.result.Shape, show(want))
	},
	"outbound_payload_includes": func(ctx context.Context, _ *run, t *turn, want any) error {
		out, err := outbound(ctx, t.result)
		if err != nil {
			return err
		}
		return includes(out, want)
	},
	"error_category": func(_ context.Context, _ *run, t *turn, want any) error {
		if t.result.Failure == nil {
			return errors.New("the turn did not fail")
		}
		return must(t.result.Failure.Category == want, "got %q, want %s", t.result.Failure.Category, show(want))
	},
	"error_bucket": func(_ context.Context, _ *run, t *turn, want any) error { return bucketIs(t.result, want) },
	"signal_correlation_resolved": func(_ context.Context, r *run, t *turn, want any) error {
		return truth(r.resolved(t), want)
	},
	"resolved_to_invocation_id": func(_ context.Context, r *run, t *turn, want any) error {
		id, err := r.resolve(want)
		if err != nil {
			return err
		}
		found := of[correlated](t.events)
		return must(len(found) == 1 && found[0].sub.InvocationID == id, "the coordinator found %v, want invocation %s", found, id)
	},
	"harness_auto_retried": func(_ context.Context, _ *run, t *turn, want any) error {
		return truth(must(len(t.requests()) > 1, "the engine was invoked %d times", len(t.requests())), want)
	},
	"session_store_load_calls": func(_ context.Context, _ *run, t *turn, want any) error {
		return equal(len(of[sessionLoaded](t.events)), want)
	},
	"session_store_save_calls": func(_ context.Context, _ *run, t *turn, want any) error {
		return equal(len(of[sessionSaved](t.events)), want)
	},
}

func pathIs(got harness.Path, want any) error {
	return must(string(got) == want, "got %q, want %s", got, show(want))
}

func bucketIs(res harness.Result, want any) error {
	if res.Failure == nil {
		return errors.New("the turn did not fail")
	}
	return must(string(res.Failure.Bucket) == want, "got %q, want %s", res.Failure.Bucket, show(want))
}

func resultStatus(res harness.Result) graph.Status {
	if res.Failure != nil {
		return graph.Errored
	}
	return res.Outcome.Status
}

// invokeArgs checks the call that reached the engine.
func invokeArgs(_ context.Context, r *run, t *turn, want any) error {
	req, err := t.request()
	if err != nil {
		return err
	}
	args, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	for _, key := range slices.Sorted(maps.Keys(args)) {
		if err := r.invokeArg(t, req, key, args[key]); err != nil {
			return within(key, err)
		}
	}
	return nil
}

func (r *run) invokeArg(t *turn, req graph.Request, key string, want any) error {
	present := must(req.SessionID != "", "the engine got no session id")
	switch key {
	case "session_id":
		return equal(req.SessionID, want)
	case "session_id_present":
		return truth(present, want)
	case "session_id_absent_verified":
		return truth(must(req.SessionID == "", "the engine got session id %q", req.SessionID), want)
	case "session_id_auto_generated":
		return truth(generated(t, req), want)
	case "session_id_caller_supplied":
		return truth(must(t.supplied != "" && req.SessionID == t.supplied, "the engine got %q, the caller said %q", req.SessionID, t.supplied), want)
	case "resume_invocation":
		id, err := r.resolve(want)
		if err != nil {
			return err
		}
		return must(req.Resume == id, "got %q, want %q", req.Resume, id)
	case "signal_payload":
		return equal(req.Payload, want)
	}
	return missing{}
}

// generated checks that the session id came from the harness.
func generated(t *turn, req graph.Request) error {
	if t.supplied != "" {
		return fmt.Errorf("the caller supplied %q", t.supplied)
	}
	return must(req.SessionID != "", "the engine got no session id")
}

// resolved checks that the coordinator found the invocation that waits.
func (r *run) resolved(t *turn) error {
	found := of[correlated](t.events)
	if len(found) != 1 {
		return fmt.Errorf("the coordinator was asked %d times, want once", len(found))
	}
	for _, earlier := range r.turns {
		if earlier != t && earlier.status() == graph.Suspended && earlier.outcome.InvocationID == found[0].sub.InvocationID {
			return found[0].err
		}
	}
	return fmt.Errorf("signal %q led to invocation %q, which did not suspend here", found[0].signalID, found[0].sub.InvocationID)
}
