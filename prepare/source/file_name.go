package source

import (
	"path/filepath"
	"strings"
)

// imageExtensions are names that promise an image, also of kinds that nothing here reads:
// such a file is a sample that fails, rather than one that silently is not there.
var imageExtensions = map[string]bool{
	".jpg": true, ".jpeg": true, ".jpe": true, ".jfif": true, ".png": true, ".gif": true,
	".bmp": true, ".dib": true, ".tif": true, ".tiff": true, ".webp": true,
	".ppm": true, ".pgm": true, ".pbm": true, ".pnm": true, ".avif": true, ".heic": true,
	".heif": true, ".jxl": true, ".jp2": true, ".tga": true, ".ico": true,
}

// IsImageName reports whether a file's name says that it is an image.
func IsImageName(name string) bool {
	return imageExtensions[strings.ToLower(filepath.Ext(name))]
}

// IsHidden reports whether a name is one that listings leave out, such as .DS_Store and the
// ._photo.jpg files that a Mac writes next to images.
func IsHidden(name string) bool { return strings.HasPrefix(name, ".") }
