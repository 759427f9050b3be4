import type { PageScope } from './pages.ts'

const scopeTexts: ReadonlyMap<string, string> = new Map([
  ['mcp', 'Use the tools, prompts and resources that you can use'],
  ['manage', 'Change the configuration of this gateway on your behalf'],
  ['profile', 'See your username and whether you are an administrator'],
  ['openid', 'Know who you are']
])

/** What every access token allows, regardless of its scopes: reading through the management API. */
const readAccessText =
  'Read what you can read in the management API of this gateway: the servers, and your recorded calls with inputs ' +
  'and outputs. For an administrator, this includes all recorded calls, the logs, the users and the ' +
  'configuration, without secrets'

/** Describes OAuth scopes in the given order, followed by what every access token allows. */
export const describeScopes = (names: readonly string[]): PageScope[] =>
  [...names.map((name) => ({ name, text: scopeTexts.get(name) })), { name: 'read', text: readAccessText }]
