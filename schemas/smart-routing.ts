/** Former names of members of `smartRouting`, and today's. */
const aliases = {
  openaiApiBaseUrl: 'llmProviderBaseUrl',
  openaiApiKey: 'llmProviderApiKey',
  openaiApiEmbeddingModel: 'embeddingModel'
} as const

/** The section `smartRouting` with today's names of members: files and clients may use former ones. */
export function withTodaysNames (smartRouting: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const section: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(smartRouting)) {
    const name = Object.hasOwn(aliases, key) ? aliases[key as keyof typeof aliases] : key
    if (name === key || !Object.hasOwn(smartRouting, name)) section[name] = value
  }
  return section
}
