package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// netrcLogin returns the login for a host in $NETRC or ~/.netrc, and a name of its place for
// errors; nil if the file has no login for the host.
func netrcLogin(host string) (*url.Userinfo, string, error) {
	path := os.Getenv("NETRC")
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, "", nil
		}
		path = filepath.Join(home, ".netrc")
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("the logins: %w", err)
	}
	return loginFor(string(text), host), "the login of " + path, nil
}

// loginFor returns the login of the machine entry for a host, or the default entry's.
func loginFor(netrc, host string) *url.Userinfo {
	var user, password string
	inside, found := false, false
	words := strings.Fields(withoutMacros(netrc))
	for i := 0; i < len(words); i++ {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch words[i] {
		case "machine", "default":
			if found {
				return url.UserPassword(user, password)
			}
			inside = words[i] == "default" || strings.EqualFold(next, host)
			if words[i] == "machine" {
				i++
			}
		case "login", "password", "account":
			if inside && words[i] == "login" {
				user, found = next, true
			} else if inside && words[i] == "password" {
				password, found = next, true
			}
			i++
		}
	}
	if !found {
		return nil
	}
	return url.UserPassword(user, password)
}

// withoutMacros removes comments, and macros, which end with an empty line.
func withoutMacros(text string) string {
	var out strings.Builder
	macro := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		macro = macro && trimmed != "" || strings.HasPrefix(trimmed, "macdef")
		if !macro && !strings.HasPrefix(trimmed, "#") {
			out.WriteString(line)
		}
	}
	return out.String()
}
