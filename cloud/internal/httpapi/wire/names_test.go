package wire

import (
	"maps"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/yeolda/yeolda/cloud/internal/contract"
)

// TestEveryFieldOfARequestHasAName checks that messages about a field of a request, in its body, path or query, name it in Korean.
func TestEveryFieldOfARequestHasAName(t *testing.T) {
	t.Parallel()
	fields := map[string]string{} // the first operation that has the field
	var collect func(operation string, schema *openapi3.SchemaRef)
	collect = func(operation string, schema *openapi3.SchemaRef) {
		if schema == nil || schema.Value == nil {
			return
		}
		for name, property := range schema.Value.Properties {
			fields[name] = operation
			collect(operation, property)
		}
		collect(operation, schema.Value.Items)
		collect(operation, schema.Value.AdditionalProperties.Schema)
		for _, parts := range []openapi3.SchemaRefs{schema.Value.AllOf, schema.Value.AnyOf, schema.Value.OneOf} {
			for _, part := range parts {
				collect(operation, part)
			}
		}
	}
	for _, o := range contract.Operations() {
		for _, parameters := range []openapi3.Parameters{o.Item.Parameters, o.Parameters} {
			for _, parameter := range parameters {
				if parameter.Value.In != openapi3.ParameterInHeader && parameter.Value.In != openapi3.ParameterInCookie {
					fields[parameter.Value.Name] = o.OperationID
				}
			}
		}
		if o.RequestBody != nil {
			for _, content := range o.RequestBody.Value.Content {
				collect(o.OperationID, content.Schema)
			}
		}
	}
	if len(fields) < 190 {
		t.Fatalf("the description has %d fields of requests, want at least 190", len(fields))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, named := fieldNames[name]; !named {
			t.Errorf("the field %s of %s has no Korean name", name, fields[name])
		}
	}
}
