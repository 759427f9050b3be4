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

/** Scopes with their texts, in the order given. */
export const describeScopes = (names: readonly string[]): PageScope[] => names.map((name) => ({ name, text: texts.get(name) }))
