package discord

import (
	"net/http"
	"slices"
	"strings"
)

// route is what Discord limits together until it has named a bucket: a method and a path without ids (doc
// topics/rate-limits). Major is the resource by which each bucket is divided further: a channel, a guild, a webhook with its
// token.
type route struct{ Name, Major string }

// routeOf reads the path of a request, without /api/v10.
func routeOf(method, path string) route {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var r route
	if len(parts) > 1 && slices.Contains([]string{"channels", "guilds", "webhooks", "interactions"}, parts[0]) {
		n := 2
		if parts[0] == "webhooks" || parts[0] == "interactions" {
			n = min(3, len(parts))
		}
		r.Major = strings.Join(parts[:n], "/")
		for i := 1; i < n; i++ {
			parts[i] = "{major}"
		}
	}
	for i, p := range parts {
		if isSnowflake(p) {
			parts[i] = "{id}"
		}
	}
	r.Name = method + " /" + strings.Join(parts, "/")
	return r
}

// isInteraction tells whether the route needs an interaction's token and not the bot's. Such calls are exempt from the
// global limit.
func (r route) isInteraction() bool {
	return strings.HasPrefix(r.Major, "interactions/") || strings.HasPrefix(r.Major, "webhooks/")
}

// apiPath is the path of a request to discordgo's addresses without "/api/v9", and whether it is one.
func apiPath(req *http.Request) (path string, ok bool) {
	rest, ok := strings.CutPrefix(req.URL.Path, "/api/v")
	if !ok {
		return "", false
	}
	_, path, ok = strings.Cut(rest, "/")
	return "/" + path, ok
}
