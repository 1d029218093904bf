//go:build ignore

// Validate reads compose.yaml with the library of Docker Compose, and the output of kustomize (standard input) into the types
// of the Kubernetes API, where an unknown field is an error. validate.sh runs it in a module of its own, because no other
// program needs these libraries.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	if err := errors.Join(compose(os.Args[1]), kubernetes(os.Stdin)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func compose(file string) error {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithEnv([]string{"YEOLDA_DOMAIN=rooms.example"}))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	for name, service := range project.Services {
		if !service.ReadOnly || service.Privileged {
			err = errors.Join(err, fmt.Errorf("compose: %s may write to its own image, or is privileged", name))
		}
	}
	fmt.Printf("compose.yaml: %d services\n", len(project.Services))
	return err
}

func kubernetes(from io.Reader) (failures error) {
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	documents := yaml.NewYAMLReader(bufio.NewReader(from))
	known, custom := 0, 0
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			fmt.Printf("kubernetes: %d resources, and %d of operators, which are read as YAML only\n", known, custom)
			return failures
		}
		if err != nil {
			return errors.Join(failures, err)
		}
		_, kind, err := strict.Decode(document, nil, nil)
		switch {
		case runtime.IsNotRegisteredError(err):
			custom++
		case err != nil:
			name, _, _ := bytes.Cut(document, []byte("\nspec:"))
			failures = errors.Join(failures, fmt.Errorf("%v: %w\n%s", kind, err, name))
		default:
			known++
		}
	}
}
