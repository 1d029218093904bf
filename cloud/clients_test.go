package cloud_test

import (
	"testing"

	"github.com/yeolda/yeolda/cloud"
	"github.com/yeolda/yeolda/cloud/client"
	"github.com/yeolda/yeolda/cloud/internal/clientgen"
)

// TestClientIsFresh requires that cloud/client was generated from the openapi.yaml of this tree.
func TestClientIsFresh(t *testing.T) {
	reduced, err := clientgen.Reduce(cloud.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if got := clientgen.Sum(reduced); got != client.Contract {
		t.Errorf("openapi.yaml has changed: run `make clients` (generated from %s, now %s)", client.Contract, got)
	}
}
