package protocol

import _ "embed"

// AsyncAPI is asyncapi.yaml, the description of topics and messages. It is written by hand; tests check the code against it.
//
//go:embed asyncapi.yaml
var AsyncAPI []byte
