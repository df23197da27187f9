package llm

// Validate checks one message by its role (llm-provider §3). The error is an *Error.
func (m Message) Validate() error {
	switch m.Role {
	case System, User, Assistant:
		return nil
	case ToolRole:
		if m.ToolCallID != "" {
			return nil
		}
		return &Error{Category: InvalidRequest, Message: "a tool message needs the id of its call"}
	}
	return &Error{Category: InvalidRequest, Message: "the role must be system, user, assistant or tool"}
}
