// Package cloud embeds the description of the HTTP interface for the whole module.
package cloud

import _ "embed"

// OpenAPI is openapi.yaml, the HTTP interface in OpenAPI 3.1. It is written by hand; tests check the code against it.
//
//go:embed openapi.yaml
var OpenAPI []byte
