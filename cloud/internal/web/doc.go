// Package web serves the pages: the customers' site, the key page and the administrators' console.
//
// The sources are TypeScript and CSS, embedded in the binary and bundled by esbuild when the process starts. A fresh
// clone therefore builds with the Go tool only, git holds no generated files, and a page that does not compile stops
// the process at startup. No third-party code reaches a browser, except the payment provider's script in the one
// document that takes a payment (see policy.go).
//
//	/                 one shell for every screen of the customers' site; the browser renders the screens
//	/k/{key}          the key page: rendered here, works without scripts, complete in one response
//	/assets/{name}    bundles, named by their content, cached permanently
//	/sw.js            the service worker: keeps the shell and the key page readable without a network
//
// The site uses the same HTTP interface as any other client (src/core/api.ts).
package web
