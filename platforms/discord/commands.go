package discord

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/pace"
)

// slashCommand is a command as it is registered (doc interactions/application-commands).
type slashCommand struct {
	Name        string        `json:"name"`
	Type        int           `json:"type"`
	Description string        `json:"description"`
	Options     []slashOption `json:"options,omitempty"`
}

type slashOption struct {
	Type        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	MaxLength   int    `json:"max_length,omitempty"`
}

// maxQuestion is the longest question to ask by a command: it is shown in one message, escaped.
const maxQuestion = 1500

// slashCommands are our commands, by name.
func slashCommands() []slashCommand {
	command := func(name, description string, options ...slashOption) slashCommand {
		return slashCommand{Name: name, Type: int(discordgo.ChatApplicationCommand), Description: description, Options: options}
	}
	question := slashOption{
		Type: int(discordgo.ApplicationCommandOptionString), Name: "text", Description: "What you would like to know or have done",
		Required: true, MaxLength: maxQuestion,
	}
	return []slashCommand{
		command("approvals", "List what waits for a decision"),
		command("ask", "Ask the bot", question),
		command("reset", "Forget what was said in this conversation"),
		command("status", "Tell what the bot is doing here"),
		command("stop", "Stop what the bot is doing here"),
	}
}

// registerCommands registers our slash commands, all at once, unless they are registered so already. It waits for READY,
// and tries again where it makes sense; without them the words still work as text.
func (a *Adapter) registerCommands(ctx context.Context) {
	for attempt := 0; ; attempt++ {
		err := errNotReady
		if app := a.identity().App; a.self.Load() != nil && isSnowflake(app) {
			err = a.syncCommands(ctx, app)
		} else {
			attempt = 0
		}
		switch platforms.FailureOf(err) {
		case platforms.Refused, platforms.Malformed, platforms.Broken, platforms.Gone:
			a.log.Warn("discord: the slash commands could not be registered", "error", err)
			return
		}
		if err == nil {
			return
		}
		wait := 100 * time.Millisecond
		if !errors.Is(err, errNotReady) {
			a.log.Warn("discord: the slash commands could not be registered yet", "error", err)
			wait = pace.Backoff(attempt, 0)
		}
		if pace.Sleep(ctx, wait) != nil {
			return
		}
	}
}

var errNotReady = errors.New("discord: READY has not come")

func (a *Adapter) syncCommands(ctx context.Context, app string) error {
	path := "applications/" + app + "/commands"
	var has []slashCommand
	if err := a.do(ctx, call{op: "look up commands", method: http.MethodGet, path: path}, &has); err != nil {
		return err
	}
	want := slashCommands()
	if sameCommands(has, want) {
		return nil
	}
	return a.do(ctx, call{op: "register commands", method: http.MethodPut, path: path, body: want}, nil)
}

func sameCommands(a, b []slashCommand) bool {
	return canonical(a) == canonical(b)
}

// canonical is the commands in one order, as JSON.
func canonical(all []slashCommand) string {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(x, y slashCommand) int { return strings.Compare(x.Name, y.Name) })
	for i := range sorted {
		if sorted[i].Type == 0 {
			sorted[i].Type = int(discordgo.ChatApplicationCommand) // which Discord may leave out
		}
	}
	b, err := json.Marshal(sorted)
	if err != nil {
		panic("discord: commands of strings are no JSON: " + err.Error())
	}
	return string(b)
}
