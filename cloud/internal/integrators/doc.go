// Package integrators holds the tests of what integrators read and use: the chapters in cloud/docs, the examples in
// docs/examples, and the generated clients. They run against the whole service over HTTP.
package integrators
