// The emoji that bots and people use most here, by Slack's names. Others are shown by their name.

const known = {
  eyes: "👀", white_check_mark: "✅", heavy_check_mark: "✔️", x: "❌", no_entry: "⛔", no_entry_sign: "🚫", warning: "⚠️",
  hourglass: "⌛", hourglass_flowing_sand: "⏳", hammer_and_wrench: "🛠️", gear: "⚙️", rocket: "🚀", robot_face: "🤖",
  thumbsup: "👍", "+1": "👍", thumbsdown: "👎", "-1": "👎", tada: "🎉", wave: "👋", heart: "❤️", fire: "🔥", bulb: "💡",
  lock: "🔒", unlock: "🔓", key: "🔑", memo: "📝", bell: "🔔", clock1: "🕐", stopwatch: "⏱️", alarm_clock: "⏰",
  octagonal_sign: "🛑", question: "❓", exclamation: "❗", information_source: "ℹ️", speech_balloon: "💬", thinking_face: "🤔",
  smile: "😄", slightly_smiling_face: "🙂", large_green_circle: "🟢", large_yellow_circle: "🟡", red_circle: "🔴",
  ballot_box_with_check: "☑️", raised_hand: "✋", pray: "🙏", ok_hand: "👌", zap: "⚡", mag: "🔍", paperclip: "📎",
};

export const emoji = (name) => known[name] || `:${name}:`;
