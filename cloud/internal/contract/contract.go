// Package contract holds exchanges over HTTP against openapi.yaml, the description of the interface. It serves tests:
// a client that checks every exchange makes every test of the service a test of the description, and the reverse.
//
// An answer must be one that the description has for the operation. A request must be valid only if the service took
// it: tests send invalid ones on purpose, but whatever is answered with success the description must allow.
package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/yeolda/yeolda/cloud"
)

// An Exchange is a request and its answer, with both bodies read.
type Exchange struct {
	Request *http.Request // its URL's path is below the server's, without /api
	Sent    []byte
	Answer  *http.Response
	Got     []byte
}

// Document returns the description, which is valid or panics: a test that needs it cannot go on without.
var Document = sync.OnceValue(func() *openapi3.T {
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.FileBodyDecoder)
	doc, err := openapi3.NewLoader().LoadFromData(cloud.OpenAPI)
	if err == nil {
		err = doc.Validate(context.Background())
	}
	if err != nil {
		panic("openapi.yaml: " + err.Error())
	}
	return doc
})

// An Operation is a method of a path, as described.
type Operation struct {
	Path   string // with {names}
	Method string
	*openapi3.Operation

	Item *openapi3.PathItem // with the parameters all methods share
}

// Operations returns all that are described.
func Operations() []Operation {
	var list []Operation
	for path, item := range Document().Paths.Map() {
		for method, operation := range item.Operations() {
			list = append(list, Operation{path, method, operation, item})
		}
	}
	slices.SortFunc(list, func(a, b Operation) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return list
}

// Access is who may call the operation: its x-access.
func (o Operation) Access() string {
	access, _ := o.Extensions["x-access"].(string)
	return access
}

// Check returns what is wrong with an exchange.
func Check(x Exchange) error {
	if x.Request.Method == http.MethodHead {
		return nil // no body to look at
	}
	if x.Answer.StatusCode == http.StatusForbidden && http.NewCrossOriginProtection().Check(x.Request) != nil {
		return visit("CrossOrigin", x.Got)
	}
	operation, params, known := find(x.Request.Method, strings.Split(x.Request.URL.Path, "/"))
	if !known {
		return checkStray(x)
	}
	note(operation, x.Answer.StatusCode)
	request := &openapi3filter.RequestValidationInput{
		Request: withBody(x.Request, x.Sent), PathParams: params,
		Route: &routers.Route{
			Spec: Document(), Path: operation.Path, PathItem: operation.Item, Method: operation.Method, Operation: operation.Operation,
		},
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, SkipSettingDefaults: true,
		},
	}
	if x.Answer.StatusCode < 300 {
		if err := openapi3filter.ValidateRequest(context.Background(), request); err != nil {
			return fmt.Errorf("%s: answered %d to a request that is not allowed: %w", operation.OperationID, x.Answer.StatusCode, err)
		}
	}
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request, Status: x.Answer.StatusCode, Header: x.Answer.Header,
		Body: io.NopCloser(bytes.NewReader(x.Got)), Options: request.Options,
	})
	if err != nil {
		return fmt.Errorf("%s: answer %d: %w", operation.OperationID, x.Answer.StatusCode, err)
	}
	return checkEvent(operation, x)
}

func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

// checkStray judges the answer to what is not described: an error in the envelope that says so.
func checkStray(x Exchange) error {
	switch x.Answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
	default:
		return fmt.Errorf("answer %d to what is not described", x.Answer.StatusCode)
	}
	return visit("AnyError", x.Got)
}

// checkEvent holds the data of an event against its schema: a media type has none for it.
func checkEvent(o Operation, x Exchange) error {
	const stream = "text/event-stream"
	response := o.Responses.Status(x.Answer.StatusCode)
	if response == nil || response.Value.Content[stream] == nil {
		return nil
	}
	_, data, found := bytes.Cut(x.Got, []byte("\ndata: "))
	if !found {
		return errors.New("event without data")
	}
	return visit("DoorResult", bytes.TrimSpace(data))
}

// visit holds JSON against a schema of the components.
func visit(schema string, raw []byte) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return fmt.Errorf("%s: %w", schema, err)
	}
	return Document().Components.Schemas[schema].Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
}

// find returns the operation that a request is for. Of several paths that match, the one with fewer names does.
func find(method string, segments []string) (Operation, map[string]string, bool) {
	var (
		best  string
		names map[string]string
	)
	for path := range Document().Paths.Map() {
		if params, ok := match(strings.Split(path, "/"), segments); ok && (best == "" || len(params) < len(names)) {
			best, names = path, params
		}
	}
	if best == "" {
		return Operation{}, nil, false
	}
	item := Document().Paths.Find(best)
	operation := item.GetOperation(method)
	return Operation{best, method, operation, item}, names, operation != nil
}

func match(template, segments []string) (map[string]string, bool) {
	if len(template) != len(segments) {
		return nil, false
	}
	params := map[string]string{}
	for i, t := range template {
		if name, ok := strings.CutPrefix(t, "{"); ok && segments[i] != "" {
			params[strings.TrimSuffix(name, "}")] = segments[i]
		} else if t != segments[i] {
			return nil, false
		}
	}
	return params, true
}

// seen is what the exchanges so far have covered.
var seen struct {
	sync.Mutex
	answers map[string]map[int]bool // operation id -> status
}

func note(o Operation, status int) {
	seen.Lock()
	defer seen.Unlock()
	if seen.answers == nil {
		seen.answers = map[string]map[int]bool{}
	}
	if seen.answers[o.OperationID] == nil {
		seen.answers[o.OperationID] = map[int]bool{}
	}
	seen.answers[o.OperationID][status] = true
}

// Uncovered returns the answers described for the interface itself, additions for pages aside, that no checked exchange
// has had yet, as "operation status".
func Uncovered() []string {
	seen.Lock()
	defer seen.Unlock()
	var list []string
	for _, o := range Operations() {
		if slices.Contains(o.Tags, "admin console") || slices.Contains(o.Tags, "customer page") {
			continue
		}
		for status := range o.Responses.Map() {
			var code int
			if _, err := fmt.Sscan(status, &code); err == nil && !seen.answers[o.OperationID][code] {
				list = append(list, o.OperationID+" "+status)
			}
		}
	}
	slices.Sort(list)
	return list
}
