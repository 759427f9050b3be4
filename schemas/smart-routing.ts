/** Former names of members of `smartRouting`, with the current ones. */
const aliases = {
  openaiApiBaseUrl: 'llmProviderBaseUrl',
  openaiApiKey: 'llmProviderApiKey',
  openaiApiEmbeddingModel: 'embeddingModel'
} as const

/** Renames former members of the section `smartRouting`, which files and clients may use, to the current names. */
export function withCurrentSmartRoutingNames (
  smartRouting: Readonly<Record<string, unknown>>
): Record<string, unknown> {
  const section: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(smartRouting)) {
    const name = Object.hasOwn(aliases, key) ? aliases[key as keyof typeof aliases] : key
    if (name === key || !Object.hasOwn(smartRouting, name)) section[name] = value
  }
  return section
}
