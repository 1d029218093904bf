// Package cloud holds what the whole module shares: the description of its HTTP interface.
package cloud

import _ "embed"

// OpenAPI is openapi.yaml, the HTTP interface in OpenAPI 3.1. It is written from the interface, not from the code: tests
// hold the code against it.
//
//go:embed openapi.yaml
var OpenAPI []byte
