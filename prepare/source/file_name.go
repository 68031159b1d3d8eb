package source

import (
	"path/filepath"
	"strings"
)

// imageExtensions has the extensions of image formats, including formats that are not decoded here: such a file is
// a sample that fails with an error, and is not left out silently.
var imageExtensions = map[string]bool{
	".jpg": true, ".jpeg": true, ".jpe": true, ".jfif": true, ".png": true, ".gif": true,
	".bmp": true, ".dib": true, ".tif": true, ".tiff": true, ".webp": true,
	".ppm": true, ".pgm": true, ".pbm": true, ".pnm": true, ".avif": true, ".heic": true,
	".heif": true, ".jxl": true, ".jp2": true, ".tga": true, ".ico": true,
}

// IsImageName reports whether the extension of a file name is the extension of an image format.
func IsImageName(name string) bool {
	return imageExtensions[strings.ToLower(filepath.Ext(name))]
}

// IsHidden reports whether listings leave out a name, such as .DS_Store and the ._photo.jpg files that macOS writes
// next to images.
func IsHidden(name string) bool { return strings.HasPrefix(name, ".") }
