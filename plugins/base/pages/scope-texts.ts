/** What an OAuth scope permits, for the person who is asked. */
export interface PageScope {
  name: string
  /** Completes "The application will be able to"; undefined: the name is shown. */
  text?: string
}

const texts: ReadonlyMap<string, string> = new Map([
  ['mcp', 'Use the tools, prompts and resources that you can use'],
  ['manage', 'Change this hub\'s configuration on your behalf'],
  ['profile', 'See your username and whether you are an administrator'],
  ['openid', 'Know who you are']
])

/** What every access token permits, whatever its scopes: the management API's reading (DECISIONS §3). */
const readable =
  'Read what you can read in this hub\'s management API: the servers, and your recorded calls with what went in and came out. ' +
  'As an administrator you read all of it: everybody\'s recorded calls, the logs, the users and the configuration, without secrets'

/** Scopes with their texts, in the order given, and what comes with each of them. */
export const describeScopes = (names: readonly string[]): PageScope[] =>
  [...names.map((name) => ({ name, text: texts.get(name) })), { name: 'read', text: readable }]
