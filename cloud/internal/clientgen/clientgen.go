// Package clientgen prepares openapi.yaml for the generator of the Go client, which reads OpenAPI 3.0: types that may be null
// become nullable, and what only checks values (patterns, constants, enumerations) or only explains (examples) is left out.
// A client must accept values that are newer than itself.
package clientgen

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

type object = map[string]any

// Reduce returns openapi.yaml as a document of OpenAPI 3.0 in JSON. The same input gives the same output.
func Reduce(contract []byte) ([]byte, error) {
	var doc object
	if err := yaml.Unmarshal(contract, &doc); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	components := doc["components"].(object)
	r := reducer{parameters: components["parameters"].(object), responses: components["responses"].(object)}
	schemas := object{}
	for name, s := range components["schemas"].(object) {
		schemas[name] = schema(s)
	}
	paths := object{}
	for path, item := range doc["paths"].(object) {
		if operations := r.path(item.(object)); len(operations) > 0 {
			paths[path] = operations
		}
	}
	return json.MarshalIndent(object{
		"openapi": "3.0.3", "info": object{"title": "Yeolda", "version": "2"}, "paths": paths, "components": object{"schemas": schemas},
	}, "", " ")
}

// Sum returns the SHA-256 of a reduced document, in hexadecimal.
func Sum(reduced []byte) string {
	sum := sha256.Sum256(reduced)
	return hex.EncodeToString(sum[:])
}

type reducer struct{ parameters, responses object }

// path reduces the operations of a path. Only answers of success are kept: the client returns all others as its error.
func (r reducer) path(item object) object {
	shared := r.list(item["parameters"])
	reduced := object{}
	for method, o := range item {
		operation, ok := o.(object)
		if !ok || !offered(operation) {
			continue
		}
		kept := object{"operationId": operation["operationId"], "summary": operation["summary"], "responses": r.answers(operation["responses"].(object))}
		if parameters := append(r.list(operation["parameters"]), shared...); len(parameters) > 0 {
			kept["parameters"] = parameters
		}
		if body, ok := operation["requestBody"].(object); ok {
			kept["requestBody"] = object{"required": body["required"], "content": content(body["content"].(object))}
		}
		reduced[method] = kept
	}
	return reduced
}

// offered reports whether programs of integrators use an operation: not what has ended, what tokens never reach, and what other
// systems call.
func offered(operation object) bool {
	tags, _ := operation["tags"].([]any)
	return operation["deprecated"] != true && operation["x-scope"] != "none" && operation["x-envelope"] != false &&
		!slices.Contains(tags, any("machine"))
}

// list returns parameters with their references replaced.
func (r reducer) list(parameters any) (reduced []any) {
	given, _ := parameters.([]any)
	for _, p := range given {
		parameter := resolve(p.(object), r.parameters)
		reduced = append(reduced, object{
			"name": parameter["name"], "in": parameter["in"], "required": parameter["required"] == true, "schema": schema(parameter["schema"]),
		})
	}
	return reduced
}

func (r reducer) answers(given object) object {
	reduced := object{}
	for status, a := range given {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		answer := resolve(a.(object), r.responses)
		kept := object{"description": answer["description"]}
		if c, ok := answer["content"].(object); ok {
			kept["content"] = content(c)
		}
		reduced[status] = kept
	}
	return reduced
}

// resolve follows a reference to a component.
func resolve(o, components object) object {
	if ref, ok := o["$ref"].(string); ok {
		return components[ref[strings.LastIndex(ref, "/")+1:]].(object)
	}
	return o
}

func content(given object) object {
	reduced := object{}
	for kind, c := range given {
		reduced[kind] = object{"schema": schema(c.(object)["schema"])}
	}
	return reduced
}

// kept are the keywords of a schema that shape a type. The others are reduced below or left out.
var kept = []string{"$ref", "description", "format", "required", "nullable"}

func schema(given any) any {
	s, ok := given.(object)
	if !ok {
		return object{} // true: any value
	}
	reduced := object{}
	for _, keyword := range kept {
		if value, ok := s[keyword]; ok {
			reduced[keyword] = value
		}
	}
	if reduced["format"] == "uuid" {
		delete(reduced, "format") // a client passes identifiers on as they are
	}
	typed(reduced, s)
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		if options, ok := s[keyword].([]any); ok {
			combine(reduced, keyword, options)
		}
	}
	if properties, ok := s["properties"].(object); ok {
		fields := object{}
		for name, p := range properties {
			fields[name] = schema(p)
		}
		reduced["properties"] = fields
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if inner, ok := s[keyword].(object); ok {
			reduced[keyword] = schema(inner)
		}
	}
	return reduced
}

// typed sets the type. A value of one type or null is nullable; of several types, it may be anything.
func typed(reduced, s object) {
	switch t := s["type"].(type) {
	case string:
		reduced["type"] = t
	case []any:
		var types []any
		for _, name := range t {
			if name == "null" {
				reduced["nullable"] = true
			} else {
				types = append(types, name)
			}
		}
		if len(types) == 1 {
			reduced["type"] = types[0]
		}
	}
	values, _ := s["enum"].([]any)
	for _, value := range append(values, s["const"]) {
		if _, ok := value.(string); ok && reduced["type"] == nil {
			reduced["type"] = "string"
		}
		if value == nil && len(values) > 0 && slices.Contains(values, nil) {
			reduced["nullable"] = true
		}
	}
}

// combine sets allOf, anyOf or oneOf. The envelope becomes an object with its data, and a choice between null and one type
// becomes a nullable type.
func combine(reduced object, keyword string, options []any) {
	var choices []any
	for _, o := range options {
		option, _ := o.(object)
		switch {
		case option["type"] == "null":
			reduced["nullable"] = true
		case option["$ref"] == "#/components/schemas/Success":
			reduced["type"], reduced["required"] = "object", []any{"data"}
		default:
			choices = append(choices, schema(o))
		}
	}
	if reduced["type"] == "object" && len(choices) == 1 {
		if envelope := choices[0].(object); envelope["properties"] != nil {
			reduced["properties"] = envelope["properties"]
			return
		}
	}
	if reduced["nullable"] == true && len(choices) == 1 {
		keyword = "allOf"
	}
	if len(choices) > 0 {
		reduced[keyword] = choices
	}
}
