package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// store keeps files by names with slashes.
type store interface {
	// put stores a file, completely or not at all.
	put(ctx context.Context, name string, content io.Reader) error
	get(ctx context.Context, name string) (io.ReadCloser, error)
	// list returns the names that begin with a prefix, which is empty or a folder with its slash.
	list(ctx context.Context, prefix string) ([]string, error)
	remove(ctx context.Context, name string) error
}

// folder is a store in a directory, which must exist: it may be a disk that is not mounted.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

func (f folder) put(_ context.Context, name string, content io.Reader) error {
	if _, err := os.Stat(string(f)); err != nil {
		return err
	}
	path := f.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close()) // the new name must survive what the caller removes next
}

func (f folder) get(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(f.path(name))
}

func (f folder) list(_ context.Context, prefix string) (names []string, err error) {
	if _, err := os.Stat(string(f)); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(f.path(prefix), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		name, err := filepath.Rel(string(f), path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	return names, err
}

func (f folder) remove(_ context.Context, name string) error { return os.Remove(f.path(name)) }

// partSize bounds the memory of an upload. A bucket takes 10,000 parts, hence files of up to 312 GiB.
const partSize = 32 << 20

// bucket is a store in a bucket of an S3-compatible storage.
type bucket struct {
	client       *minio.Client
	name, prefix string
}

// openBucket returns the store of https://HOST/BUCKET/FOLDER. It does not connect yet.
func openBucket(place, access, secret string) (*bucket, error) {
	u, err := url.Parse(place)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("archive: the place is neither a folder nor https://HOST/BUCKET/FOLDER")
	}
	name, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if name == "" {
		return nil, errors.New("archive: the place names no bucket: https://HOST/BUCKET/FOLDER")
	}
	if prefix != "" {
		prefix += "/"
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(access, secret, ""), Secure: u.Scheme == "https", BucketLookup: minio.BucketLookupPath,
	})
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return &bucket{client: client, name: name, prefix: prefix}, nil
}

func (b *bucket) put(ctx context.Context, name string, content io.Reader) error {
	_, err := b.client.PutObject(ctx, b.name, b.prefix+name, content, -1, minio.PutObjectOptions{PartSize: partSize})
	return err
}

func (b *bucket) get(ctx context.Context, name string) (io.ReadCloser, error) {
	return b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
}

func (b *bucket) list(ctx context.Context, prefix string) (names []string, err error) {
	for object := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}) {
		if object.Err != nil {
			return nil, object.Err
		}
		names = append(names, strings.TrimPrefix(object.Key, b.prefix))
	}
	return names, nil
}

func (b *bucket) remove(ctx context.Context, name string) error {
	return b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{})
}
