//go:build !unix

package service

func openFiles() int { return defaultFiles }
