// Package version says which version of penstock a program is. Manifests and parts record it, as parts of one dataset
// must be made by one version, and --version prints it.
package version

import "runtime/debug"

// release is the version of a release, which its build sets by -ldflags -X.
var release string

// Version returns the version of the module that the program was built from: the version of a release, a version
// derived from the commit, or "devel" if the build knows neither.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
