// Package openai speaks the OpenAI Chat Completions API (llm-provider §8), which most other servers of models speak too:
// give their address as the base URL. It knows the wire and its errors; it neither retries nor limits nor keeps anything
// between calls, which is the business of those who call it.
//
// The official SDK carries the requests. Its types stay in here, and so do its errors: they hold the request, and with
// it the key.
//
// Thinking blocks have no form on this wire. They are left out of what is sent, without an error (§8.1.1), so that a
// conversation begun with another provider can go on here.
package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/parley-chat/parley/core/llm"
)

var (
	_ llm.Provider = (*Provider)(nil)
	_ llm.Streamer = (*Provider)(nil)
)

const (
	defaultBaseURL = "https://api.openai.com/v1"
	// headerTimeout bounds the wait for an answer to begin when the caller brings no client and no deadline.
	headerTimeout = 10 * time.Minute
)

// Options configure a Provider. Model is required.
type Options struct {
	Model      string
	APIKey     string           // sent as a bearer token; empty sends none, which local servers accept
	BaseURL    string           // up to and with /v1; empty is OpenAI's own
	HTTPClient *http.Client     // empty is a client of its own that waits ten minutes at most for an answer to begin
	Now        func() time.Time // for a Retry-After that is a date; empty is time.Now
}

// Provider is one model behind one endpoint. Calls go to the wire side by side (llm-provider §8.4).
type Provider struct {
	model   string
	client  sdk.Client
	refused error // why no call can succeed, if the options are wrong
}

// New makes a provider and sends nothing. Options that cannot work are reported by every call, as InvalidRequest.
//
// The environment is not read: OPENAI_API_KEY and its kin count only if the caller passes them.
func New(options Options) *Provider {
	if options.BaseURL == "" {
		options.BaseURL = defaultBaseURL
	}
	if options.HTTPClient == nil {
		options.HTTPClient = defaultClient()
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	requests := []option.RequestOption{
		option.WithBaseURL(options.BaseURL),
		option.WithHTTPClient(options.HTTPClient),
		option.WithMaxRetries(0),
		option.WithMiddleware(guard(options.APIKey, options.Now)),
	}
	if options.APIKey != "" {
		requests = append(requests, option.WithAPIKey(options.APIKey))
	}
	return &Provider{
		model:   options.Model,
		client:  sdk.Client{Options: requests},
		refused: checkOptions(options),
	}
}

func defaultClient() *http.Client {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   32,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: headerTimeout,
	}
	return &http.Client{Transport: transport}
}

func checkOptions(options Options) error {
	if options.Model == "" {
		return &llm.Error{Category: llm.InvalidRequest, Message: "no model is named"}
	}
	base, err := url.Parse(options.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return &llm.Error{Category: llm.InvalidRequest, Message: "the base URL is not an http or https address"}
	}
	return nil
}

// Ready asks the endpoint for its models and looks for the bound one (llm-provider §5). A model that is listed as not
// loaded is ModelNotLoaded, one that is not listed InvalidModel.
func (p *Provider) Ready(ctx context.Context) error {
	if p.refused != nil {
		return p.refused
	}
	var body []byte
	if err := p.client.Get(ctx, "models", nil, &body); err != nil {
		return classify(ctx, err, false)
	}
	return findModel(body, p.model)
}

// Complete performs one completion. Its error is an *llm.Error, or the context's if the caller gave up. A deadline that
// passed is Unavailable and the context's error at once.
func (p *Provider) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	body, err := p.encode(req, false)
	if err != nil {
		return llm.Response{}, err
	}
	var answer []byte
	if err := p.client.Post(ctx, "chat/completions", body, &answer); err != nil {
		return llm.Response{}, classify(ctx, err, hasImage(req))
	}
	return receive(req, answer)
}

// encode checks the request and writes its body, before anything is sent.
func (p *Provider) encode(req llm.Request, stream bool) (json.RawMessage, error) {
	if p.refused != nil {
		return nil, p.refused
	}
	if err := llm.ValidateRequest(req); err != nil {
		return nil, err
	}
	if err := checkImages(req.Messages); err != nil {
		return nil, err
	}
	body, err := marshal(wireRequestOf(p.model, req, stream))
	if err != nil {
		return nil, &llm.Error{Category: llm.InvalidRequest, Message: "the request cannot be written as JSON", Cause: err}
	}
	return body, nil
}

// receive reads the body of an answer and holds it to the request.
func receive(req llm.Request, body []byte) (llm.Response, error) {
	resp, err := responseOf(body)
	if err != nil {
		return llm.Response{}, err
	}
	if err := llm.ValidateResponse(req, resp); err != nil {
		return llm.Response{}, err
	}
	return resp, nil
}
