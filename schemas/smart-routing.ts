/** The current names of members of `smartRouting`, by their former names. */
const aliases = {
  openaiApiBaseUrl: 'llmProviderBaseUrl',
  openaiApiKey: 'llmProviderApiKey',
  openaiApiEmbeddingModel: 'embeddingModel'
} as const

/**
 * Renames members of the section `smartRouting` that have a former name, which files and clients may still use. If the
 * current name is present, too, its value counts.
 */
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
