package remote

import "regexp"

// Redacted stands where a secret was.
const Redacted = "REDACTED"

// What secrets look like in URLs, headers and the messages of SDKs.
var secrets = []struct {
	pattern *regexp.Regexp
	with    string
}{
	// user:password@ of a URL, also where the password was not escaped
	{regexp.MustCompile(`(://)[^/?#\s"'@:]*:[^\s"']*@`), "${1}" + Redacted + "@"},
	{regexp.MustCompile(`(://)[^/?#\s"'@]*@`), "${1}" + Redacted + "@"},
	{regexp.MustCompile(`(?i)(%3A%2F%2F)[^&\s"']*%40`), "${1}" + Redacted + "%40"},
	// an option whose name says that its value is a secret
	{regexp.MustCompile(`(?i)([\w.-]*(?:secret|token|passw(?:or)?d|signature|credential|access[_-]?key(?:[_-]?id)?|account[_-]?key|api[_-]?key|shared[_-]?key|private[_-]?key|\bsig|\bkey|\bauth))(["']?\s*[=:]\s*["']?)(?:(?:Bearer|Basic)\s+)?[^&\s"',;)}>]+`), "${1}${2}" + Redacted},
	// Authorization headers
	{regexp.MustCompile(`(?i)(authorization["']?\s*[=:]\s*["']?)(?:[\w-]+\s+)?[^\r\n"']+`), "${1}" + Redacted},
	{regexp.MustCompile(`(?i)\b(bearer\s+)[\w.~+/=-]{8,}`), "${1}" + Redacted},
	// ids of AWS access keys
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), Redacted},
}

// Redact returns text without the passwords, keys and signatures that it can be seen to have:
// user and password of URLs, options and headers whose names say so, ids of AWS keys. What is
// printed, logged or stored goes through it.
func Redact(text string) string {
	for _, s := range secrets {
		text = s.pattern.ReplaceAllString(text, s.with)
	}
	return text
}
