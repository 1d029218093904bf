package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

//go:embed src
var embedded embed.FS

// sources returns the tree of browser sources.
func sources() fs.FS {
	tree, err := fs.Sub(embedded, "src")
	if err != nil {
		panic(err) // impossible: the directory is embedded above
	}
	return tree
}

// An asset is one file of a bundle with everything needed to serve it.
type asset struct {
	mediaType string
	body      []byte
	zipped    []byte
	etag      string
}

// mediaTypes maps extensions to media types. The system's table may be missing or incomplete.
var mediaTypes = map[string]string{
	".js":          "text/javascript; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".txt":         "text/plain; charset=utf-8",
	".webmanifest": "application/manifest+json",
}

func newAsset(name string, body []byte) asset {
	sum := sha256.Sum256(body)
	return asset{
		mediaType: mediaTypes[path.Ext(name)],
		body:      body,
		zipped:    zip(body),
		etag:      `"` + hex.EncodeToString(sum[:8]) + `"`,
	}
}

func zip(body []byte) []byte {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		panic(err) // impossible: the level is a valid constant
	}
	_, _ = w.Write(body) // writing to a buffer cannot fail
	_ = w.Close()
	return zipped.Bytes()
}

// A bundle is the output of esbuild.
type bundle struct {
	assets map[string]asset  // by hashed name
	entry  map[string]string // source -> hashed name
	needs  map[string][]string
}

// bundleEach bundles the entry points of each page on their own, so that a page needs one script.
func bundleEach(tree fs.FS, pages ...[]string) (*bundle, error) {
	all := &bundle{assets: map[string]asset{}, entry: map[string]string{}, needs: map[string][]string{}}
	for _, entries := range pages {
		b, err := bundlePages(tree, entries...)
		if err != nil {
			return nil, err
		}
		maps.Copy(all.assets, b.assets)
		maps.Copy(all.entry, b.entry)
		maps.Copy(all.needs, b.needs)
	}
	return all, nil
}

// bundlePages bundles entry points. Code that they share becomes separate files.
func bundlePages(tree fs.FS, entries ...string) (*bundle, error) {
	result := build(tree, api.BuildOptions{
		EntryPoints: entries,
		Splitting:   true,
		Format:      api.FormatESModule,
		EntryNames:  "[name]-[hash]",
		ChunkNames:  "part-[hash]",
		Metafile:    true,
	})
	if err := failure(result); err != nil {
		return nil, err
	}
	b := &bundle{assets: map[string]asset{}, entry: map[string]string{}, needs: map[string][]string{}}
	for _, file := range result.OutputFiles {
		name := path.Base(file.Path)
		b.assets[name] = newAsset(name, file.Contents)
	}
	return b, b.readMetafile(result.Metafile)
}

// inline bundles one entry point into a single text, to be embedded in a page or served under a fixed name.
func inline(tree fs.FS, entry string) (string, error) {
	result := build(tree, api.BuildOptions{EntryPoints: []string{entry}, Format: api.FormatIIFE})
	if err := failure(result); err != nil {
		return "", err
	}
	return strings.TrimSpace(string(result.OutputFiles[0].Contents)), nil
}

func build(tree fs.FS, options api.BuildOptions) api.BuildResult {
	options.Bundle = true
	options.Outdir = "/"
	options.Target = api.ES2022
	options.Charset = api.CharsetUTF8
	options.MinifySyntax, options.MinifyWhitespace, options.MinifyIdentifiers = true, true, true
	options.LegalComments = api.LegalCommentsNone
	options.TsconfigRaw = `{"compilerOptions": {"useDefineForClassFields": false}}`
	options.Plugins = append(options.Plugins, fromTree(tree))
	return api.Build(options)
}

// fromTree resolves and loads modules from tree only.
func fromTree(tree fs.FS) api.Plugin {
	return api.Plugin{Name: "tree", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `.*`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			if strings.HasPrefix(args.Path, "data:") {
				return api.OnResolveResult{Path: args.Path, External: true}, nil // an image inside the stylesheet
			}
			name, err := resolve(tree, args)
			return api.OnResolveResult{Path: name, Namespace: "src"}, err
		})
		b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: "src"}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			content, err := fs.ReadFile(tree, args.Path)
			text := string(content)
			loader := api.LoaderTS
			if path.Ext(args.Path) == ".css" {
				loader = api.LoaderCSS
			}
			return api.OnLoadResult{Contents: &text, Loader: loader}, err
		})
	}}
}

func resolve(tree fs.FS, args api.OnResolveArgs) (string, error) {
	name := path.Clean(args.Path)
	if args.Kind != api.ResolveEntryPoint {
		if !strings.HasPrefix(args.Path, "./") && !strings.HasPrefix(args.Path, "../") {
			return "", fmt.Errorf("import %q: only relative files are allowed, no third-party code in the browser", args.Path)
		}
		name = path.Join(path.Dir(args.Importer), name)
	}
	for _, candidate := range []string{name, name + ".ts"} {
		if info, err := fs.Stat(tree, candidate); err == nil && !info.IsDir() {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("file %s not found", name)
}

func failure(result api.BuildResult) error {
	if len(result.Errors) == 0 {
		return nil
	}
	text := api.FormatMessages(result.Errors, api.FormatMessagesOptions{Kind: api.ErrorMessage})
	return errors.New(strings.Join(slices.Compact(text), ""))
}
