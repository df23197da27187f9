// The playground's HTTP interface. Every failure is an Error whose message can be shown.

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Refused("The playground does not answer.", 0);
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(body.error || `The playground answered ${response.status}.`, response.status);
  return body;
}

export const platforms = async () => (await request("/api/platforms")).platforms;

/** of returns the calls of one platform: state(query) and act(what, body). */
export function of(platform) {
  const base = `/api/${encodeURIComponent(platform)}`;
  return {
    state(query) {
      const given = Object.entries(query).filter(([, value]) => value);
      return request(`${base}/state?${new URLSearchParams(given)}`);
    },
    act: (what, body) => request(`${base}/${what}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    }),
    file: (id) => `${base}/files/${encodeURIComponent(id)}`,
  };
}

/** listen calls tick for each version, at every new connection too, and alive with whether the line is up. */
export function listen(tick, alive) {
  const source = new EventSource("/api/events");
  source.addEventListener("tick", (event) => tick(event.data));
  source.onopen = () => alive(true);
  source.onerror = () => {
    alive(false);
    if (source.readyState !== EventSource.CLOSED) return; // it tries again by itself
    setTimeout(() => listen(tick, alive), 1000);
  };
}
