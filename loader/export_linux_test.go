//go:build !race

package loader

// HugeSetting is hugeSetting.
var HugeSetting = hugeSetting

// SetHugeFolder replaces where the settings of large pages are, and returns what puts it back.
func SetHugeFolder(folder string) (restore func()) {
	before := hugeFolder
	hugeFolder = folder
	return func() { hugeFolder = before }
}
