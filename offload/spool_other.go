//go:build !linux

package offload

import "os"

func newChunk(size int) []byte { return make([]byte, 0, size) }

func emptyChunk([]byte) {}

func unnamedFile(dir string) (*os.File, error) { return removedFile(dir) }
