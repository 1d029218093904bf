package cloud

import "embed"

// Chapters are the chapters for integrators. Their programs are run by cloud/internal/integrators.
//
//go:embed docs/*.md
var Chapters embed.FS
