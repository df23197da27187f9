package harness

import (
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/llm"
)

// Categories of the harness itself (§10).
const (
	SessionIDUnresolved         = "harness_session_id_unresolved"
	SignalSubscriptionFailed    = "harness_signal_subscription_failed"
	SignalCorrelationFailed     = "harness_signal_correlation_failed"
	PathClassificationAmbiguous = "harness_path_classification_ambiguous"
)

// Error is an error of the harness itself.
type Error struct {
	Category string
	Message  string
	Cause    error
}

func (e *Error) Error() string {
	s := "harness: " + e.Category + ": " + e.Message
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

func (e *Error) Unwrap() error         { return e.Cause }
func (e *Error) ErrorCategory() string { return e.Category }
func (e *Error) Diagnostic() string    { return e.Message }

// Bucket is one of the three kinds of error a caller can act on (§7).
type Bucket string

const (
	// SessionTerminating: the session is broken; intervention is required, retrying is no use (§7.1).
	SessionTerminating Bucket = "session_terminating"
	// RetryableTransient: the same again may succeed (§7.2).
	RetryableTransient Bucket = "retryable_transient"
	// UserCorrectable: the caller must change something (§7.3).
	UserCorrectable Bucket = "user_correctable"
)

// Failure is an error at the turn boundary, categorised (§5.2, §7).
type Failure struct {
	Bucket   Bucket
	Category string // the concrete category
	// Diagnostic is what a person may be told.
	Diagnostic string
	Err        error
}

// InterventionRequired, RetrySafe and ActionRequired say what a transport tells its caller (§7.1 to §7.3).
func (f *Failure) InterventionRequired() bool { return f.Bucket == SessionTerminating }
func (f *Failure) RetrySafe() bool            { return f.Bucket == RetryableTransient }
func (f *Failure) ActionRequired() bool       { return f.Bucket == UserCorrectable }

// buckets holds every category of the specifications exactly once, with the section that places it. Where harness §7
// and harness-chat §10 differ (session_save_failed, the rate limit's name), the more specific document, harness-chat,
// decides for what it names, and both names are known.
var buckets = map[string]Bucket{
	graph.SessionLoadFailed:              SessionTerminating, // harness §7.1, harness-chat §10.1
	graph.SessionSaveFailed:              SessionTerminating, // harness-chat §10.1 (harness §7.2: if transient)
	graph.SessionStateMigrationAmbiguous: SessionTerminating, // harness §7.1, harness-chat §10.1
	graph.SessionStateMigrationMissing:   SessionTerminating, // harness §7.1
	graph.SessionStateMigrationFailed:    SessionTerminating, // sessions §10: non-transient, the session cannot be read
	graph.StateValidationError:           SessionTerminating, // harness §7.1: cannot resolve by retrying
	graph.SuspensionPersistenceFailed:    SessionTerminating, // harness-chat §10.1
	graph.CheckpointRecordInvalid:        SessionTerminating, // as session_load_failed
	SessionIDUnresolved:                  SessionTerminating, // harness-chat §10.1

	string(llm.Unavailable):    RetryableTransient, // harness §7.2, harness-chat §10.2
	string(llm.RateLimit):      RetryableTransient, // harness §7.2
	string(llm.ModelNotLoaded): RetryableTransient, // harness §7.2
	"provider_timeout":         RetryableTransient, // harness-chat §10.2
	"provider_rate_limited":    RetryableTransient, // harness-chat §10.2
	SignalSubscriptionFailed:   RetryableTransient, // harness §7.2: if transient
	graph.SessionWriteConflict: RetryableTransient, // sessions §8.2: the application may retry
	graph.CheckpointSaveFailed: RetryableTransient, // as session_save_failed of harness §7.2
	graph.Interrupted:          RetryableTransient, // the same turn goes on
	graph.NodeException:        RetryableTransient, // no category of its own: nothing says that the session is broken
	graph.EdgeException:        RetryableTransient, // as node_exception
	graph.ReducerError:         RetryableTransient, // as node_exception: the session was not changed
	graph.RoutingError:         RetryableTransient, // as node_exception

	string(llm.InvalidRequest):           UserCorrectable, // harness §7.3, harness-chat §10.3
	string(llm.InvalidResponse):          UserCorrectable, // harness-chat §10.3
	string(llm.Authentication):           UserCorrectable, // harness §7.3
	string(llm.InvalidModel):             UserCorrectable, // llm-provider §7: non-transient
	string(llm.UnsupportedContentBlock):  UserCorrectable, // llm-provider §7: non-transient
	graph.SuspensionResumePayloadInvalid: UserCorrectable, // harness §7.3
	graph.SuspensionRecordInvalid:        UserCorrectable, // suspension §9: the caller named the wrong invocation
	graph.SuspensionInUnsupportedContext: UserCorrectable, // suspension §9: the graph must change
	SignalCorrelationFailed:              UserCorrectable, // harness §10: nobody waits for this signal
	PathClassificationAmbiguous:          UserCorrectable, // harness §10: the transmission must change
	ChatMessageShapeInvalid:              UserCorrectable, // harness-chat §10.4
	graph.Cancelled:                      UserCorrectable, // somebody stopped it; say it again to go on
}

// ChatMessageShapeInvalid is introduced by harness-chat §10.4 and stands here for the table's sake.
const ChatMessageShapeInvalid = "chat_message_shape_invalid"

// BucketOf returns the bucket of a category. An unknown one is taken for transient: it says nothing of the session, and
// trying again does no harm.
func BucketOf(category string) Bucket {
	if b, ok := buckets[category]; ok {
		return b
	}
	return RetryableTransient
}

// Categorize sorts an error into its bucket (§7).
func Categorize(err error) *Failure {
	category := graph.CategoryOf(err)
	if category == "" {
		category = graph.NodeException
	}
	return &Failure{Bucket: BucketOf(category), Category: category, Diagnostic: graph.DiagnosticOf(err), Err: err}
}
