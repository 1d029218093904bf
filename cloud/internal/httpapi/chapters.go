package httpapi

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/yeolda/yeolda/cloud"
	"github.com/yeolda/yeolda/protocol"
)

//go:embed chapter.html chapter.css
var chapterFiles embed.FS

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table))

// firstChapter is the page that [DocsPath] itself shows.
const firstChapter = "start.md"

// chapterPage is what the template of a page shows.
type chapterPage struct {
	Title string
	Style template.CSS
	Links []chapterLink
	Body  template.HTML
}

type chapterLink struct{ Path, Title string }

// Chapters returns a handler for each page below [DocsPath] that is written for integrators, by its path: the chapters and, as
// /docs/agents, the agent protocol.
func Chapters() (map[string]http.Handler, error) {
	bodies, links, err := chapterBodies()
	if err != nil {
		return nil, err
	}
	page, err := template.ParseFS(chapterFiles, "chapter.html")
	if err != nil {
		return nil, err
	}
	style, err := chapterFiles.ReadFile("chapter.css")
	if err != nil {
		return nil, err
	}
	handlers := map[string]http.Handler{}
	for _, link := range links {
		var shown bytes.Buffer
		if err := page.Execute(&shown, chapterPage{
			Title: link.Title, Style: template.CSS(style), Links: links, Body: template.HTML(bodies[link.Path]), //nolint:gosec // our own files
		}); err != nil {
			return nil, fmt.Errorf("%s: %w", link.Path, err)
		}
		handlers[link.Path] = chapterHandler(shown.Bytes(), style)
	}
	return handlers, nil
}

// chapterBodies returns the HTML of each page, and the pages in their order.
func chapterBodies() (bodies map[string]string, links []chapterLink, err error) {
	bodies = map[string]string{}
	entries, err := cloud.Chapters.ReadDir("docs")
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		text, err := cloud.Chapters.ReadFile("docs/" + entry.Name())
		if err != nil {
			return nil, nil, err
		}
		var body bytes.Buffer
		if err := markdown.Convert(text, &body); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		link := chapterLink{Path: path.Join(DocsPath, strings.TrimSuffix(entry.Name(), ".md")), Title: title}
		at := len(links)
		if entry.Name() == firstChapter {
			link.Path, at = DocsPath, 0
		}
		links, bodies[link.Path] = slices.Insert(links, at, link), body.String()
	}
	agents := chapterLink{Path: path.Join(DocsPath, "agents"), Title: "Agent protocol"}
	if bodies[agents.Path], err = agentProtocol(protocol.AsyncAPI); err != nil {
		return nil, nil, err
	}
	return bodies, append(links, agents), nil
}

// chapterHandler serves a page that loads nothing.
func chapterHandler(page, style []byte) http.Handler {
	sum := sha256.Sum256(style)
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(page)
	})
}
