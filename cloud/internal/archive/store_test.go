package archive

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// s3 is a storage with one bucket: the part of S3's interface that the archive uses.
type s3 struct {
	mu    sync.Mutex
	files map[string][]byte
	parts map[int][]byte
}

func (s *s3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.Contains(r.Header.Get("Authorization"), "Credential=access/") {
		http.Error(w, "no credential", http.StatusForbidden)
		return
	}
	name, _ := strings.CutPrefix(r.URL.Path, "/vault/")
	query := r.URL.Query()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client disconnected
	}
	if strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		body = unchunk(body)
	}
	w.Header().Set("Content-Type", "application/xml")
	part, partErr := strconv.Atoi(query.Get("partNumber"))
	switch {
	case query.Has("location"):
		fmt.Fprint(w, `<LocationConstraint>us-east-1</LocationConstraint>`)
	case query.Get("list-type") == "2":
		s.list(w, query.Get("prefix"))
	case r.Method == http.MethodPost && query.Has("uploads"):
		s.parts = map[int][]byte{}
		fmt.Fprint(w, `<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>`)
	case r.Method == http.MethodPut && partErr == nil:
		s.parts[part] = body
		w.Header().Set("ETag", `"part"`)
	case r.Method == http.MethodPost && query.Has("uploadId"):
		var whole []byte
		for n := 1; n <= len(s.parts); n++ {
			whole = append(whole, s.parts[n]...)
		}
		s.files[name] = whole
		fmt.Fprint(w, `<CompleteMultipartUploadResult><Bucket>vault</Bucket><ETag>"whole"</ETag></CompleteMultipartUploadResult>`)
	case r.Method == http.MethodPut:
		s.files[name] = body
		w.Header().Set("ETag", `"file"`)
	case r.Method == http.MethodDelete:
		delete(s.files, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		content, ok := s.files[name]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `<Error><Code>NoSuchKey</Code></Error>`)
			return
		}
		w.Header().Set("ETag", `"file"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(content))
	}
}

func (s *s3) list(w io.Writer, prefix string) {
	type content struct {
		Key          string
		LastModified string
		Size         int
	}
	var result struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []content
	}
	for name, file := range s.files {
		if strings.HasPrefix(name, prefix) {
			result.Contents = append(result.Contents, content{name, "2026-11-23T00:00:00Z", len(file)})
		}
	}
	_ = xml.NewEncoder(w).Encode(result) // the client may have disconnected
}

// unchunk removes the frames of a signed stream: SIZE;chunk-signature=...
func unchunk(body []byte) (content []byte) {
	for {
		head, rest, ok := bytes.Cut(body, []byte("\r\n"))
		size, err := strconv.ParseInt(strings.Split(string(head), ";")[0], 16, 64)
		if !ok || err != nil || size == 0 {
			return content
		}
		content = append(content, rest[:size]...)
		body = rest[size+2:]
	}
}

// TestStores holds that a folder and a bucket behave alike.
func TestStores(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&s3{files: map[string][]byte{}})
	t.Cleanup(server.Close)
	for name, place := range map[string]string{"folder": t.TempDir(), "bucket": server.URL + "/vault/yeolda"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := NewKey()
			if err != nil {
				t.Fatal(err)
			}
			a, err := Open(place, key, "access", "secret")
			if err != nil {
				t.Fatal(err)
			}
			for name, content := range map[string]string{"1/wal/a": "first", "1/wal/b": strings.Repeat("long ", 1_000_000), "2/base/c": ""} {
				err := a.put(t.Context(), name, func(w io.Writer) error { _, err := io.WriteString(w, content); return err })
				if err != nil {
					t.Fatal(err)
				}
				if got := read(t, a, name); got != content {
					t.Errorf("%s: got %d bytes, want %d", name, len(got), len(content))
				}
			}
			if err := a.put(t.Context(), "1/wal/broken", func(io.Writer) error { return io.ErrUnexpectedEOF }); err == nil {
				t.Error("an incomplete file was stored")
			}
			if err := a.store.remove(t.Context(), "1/wal/b"); err != nil {
				t.Fatal(err)
			}
			names, err := a.store.list(t.Context(), "1/wal/")
			if err != nil || !slices.Equal(names, []string{"1/wal/a"}) {
				t.Errorf("list: got %v, %v, want 1/wal/a", names, err)
			}
			if all, err := a.store.list(t.Context(), ""); err != nil || len(all) != 2 {
				t.Errorf("list of all: got %v, %v, want two names", all, err)
			}
			if _, err := a.get(t.Context(), "1/wal/b"); err == nil {
				t.Error("a removed file is still there")
			}
		})
	}
	if _, err := Open("/folder", "AGE-SECRET-KEY-1WRONG", "", ""); err == nil || strings.Contains(err.Error(), "WRONG") {
		t.Errorf("a wrong key: got %v, want an error that does not quote it", err)
	}
	for _, place := range []string{"https://host", "ftp://host/bucket", "https:///bucket"} {
		if _, err := openBucket(place, "", ""); err == nil {
			t.Errorf("%s is a place", place)
		}
	}
}

func read(t *testing.T, a *Archive, name string) string {
	t.Helper()
	file, err := a.get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// newArchive returns an empty archive in a directory of its own.
func newArchive(t *testing.T) *Archive {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.TempDir(), key, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestPruneKeepsWhatTheWantedTimeNeeds(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	empty := func(io.Writer) error { return nil }
	for day, segment := range []string{"000000010000000000000002", "0000000100000000000000F0", "000000020000000100000003"} {
		at := func() time.Time { return now.AddDate(0, 0, day-3) }
		if err := a.PutBase(t.Context(), "1", segment, at, empty); err != nil {
			t.Fatal(err)
		}
	}
	for _, segment := range []string{"000000010000000000000002", "0000000100000000000000EF", "0000000100000000000000F0", "00000002.history", "000000020000000100000003"} {
		if err := a.put(t.Context(), "1/wal/"+segment+walSuffix, empty); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Prune(t.Context(), "1", now.Add(-36*time.Hour)); err != nil {
		t.Fatal(err)
	}
	names, err := a.store.list(t.Context(), "1/")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	want := []string{
		"1/base/20261121T120000Z-0000000100000000000000F0-20261121T120001Z.complete", "1/base/20261121T120000Z-0000000100000000000000F0.tar.gz.age",
		"1/base/20261122T120000Z-000000020000000100000003-20261122T120001Z.complete", "1/base/20261122T120000Z-000000020000000100000003.tar.gz.age",
		"1/wal/0000000100000000000000F0.gz.age", "1/wal/00000002.history.gz.age", "1/wal/000000020000000100000003.gz.age",
	}
	if !slices.Equal(names, want) {
		t.Errorf("36 hours are kept: got\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
	if _, err := a.Choose(t.Context(), "", now.Add(-36*time.Hour)); err != nil {
		t.Errorf("the oldest kept moment: %v", err)
	}
	if err := a.PutBase(t.Context(), "9", "000000010000000000000001", func() time.Time { return now }, empty); err != nil {
		t.Fatal(err)
	}
	if b, err := a.Choose(t.Context(), "", time.Time{}); err == nil {
		t.Errorf("of two systems %+v was chosen without a name", b)
	}
	if b, err := a.Choose(t.Context(), "1", time.Time{}); err != nil || b.Segment != "000000020000000100000003" {
		t.Errorf("of system 1: got %+v, %v, want the last base", b, err)
	}
}

// TestArchiveOfAFastClock takes a base backup while the clock is ten years ahead. The last moment must be restored from the newest backup, and
// the older ones must be removed in time.
func TestArchiveOfAFastClock(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	start := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	empty := func(io.Writer) error { return nil }
	last := start.AddDate(0, 0, 2)
	for i, at := range []time.Time{start, start.AddDate(10, 0, 1), last} {
		segment := fmt.Sprintf("0000000100000000%08X", 16*(i+1))
		if err := errors.Join(a.put(t.Context(), "1/wal/"+segment+walSuffix, empty), a.PutBase(t.Context(), "1", segment, func() time.Time { return at }, empty)); err != nil {
			t.Fatal(err)
		}
	}
	for until, want := range map[time.Time]string{{}: "000000010000000000000030", start.Add(30 * time.Hour): "000000010000000000000010", last.Add(time.Hour): "000000010000000000000030"} {
		if b, err := a.Choose(t.Context(), "", until); err != nil || b.Segment != want {
			t.Errorf("until %v: got %+v, %v, want the base of segment %s", until, b, err, want)
		}
	}
	for _, step := range []struct {
		before time.Time
		want   []string
	}{
		{start.Add(30 * time.Hour), []string{"10", "20", "30"}},
		{last.Add(time.Hour), []string{"30"}},
	} {
		if err := a.Prune(t.Context(), "1", step.before); err != nil {
			t.Fatal(err)
		}
		names, err := a.store.list(t.Context(), "1/wal/")
		if err != nil {
			t.Fatal(err)
		}
		var bases []string
		found, err := a.Bases(t.Context())
		for _, b := range found {
			bases = append(bases, b.Segment[22:])
		}
		if err != nil || len(names) != len(step.want) || !slices.Equal(bases, step.want) {
			t.Errorf("from %v: left %v and the bases %v, %v, want %v", step.before, names, bases, err, step.want)
		}
	}
}

func TestFirstGap(t *testing.T) {
	t.Parallel()
	const first = "0000000100000000000000FE"
	for want, segments := range map[string][]string{
		"":                         {first, "0000000100000000000000FF", "000000010000000100000000", "00000002.history", "000000020000000100000000", "000000020000000100000001"},
		first:                      {"0000000100000000000000FF"},
		"0000000100000000000000FF": {first, "000000010000000100000000"},
		"000000010000000100000000": {first, "0000000100000000000000FF", "000000010000000100000001"},
		"000000020000000100000001": {first, "000000020000000100000000", "000000020000000100000002"},
	} {
		if got := firstGap(first, segments); got != want {
			t.Errorf("%v: got %q, want %q", segments, got, want)
		}
	}
}
