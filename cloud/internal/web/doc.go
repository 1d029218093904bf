// Package web serves the pages people see: the customers' site, the key page and the console.
//
// The sources are TypeScript and CSS, embedded in the binary and bundled by esbuild when the process starts: a
// fresh clone builds with the Go tool alone, nothing generated is kept in git, and a page that does not compile
// stops the process at once instead of a customer later. No third-party code reaches a browser, except the
// payment provider's own script, and that only in the one document that takes a payment (see policy.go).
//
//	/                 one shell for every screen of the customers' site; screens are made in the browser
//	/k/{key}          the key page: made here, works without scripts, and is complete in one answer
//	/assets/{name}    bundles, named by their content, kept by browsers for ever
//	/sw.js            the service worker: keeps the shell and the key page readable without a network
//
// The site talks to the service through the same HTTP interface as everybody else (src/core/api.ts).
package web
