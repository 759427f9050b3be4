import { createHash } from 'node:crypto'
import type { SmartRouting } from '../options.ts'

/** How to reach an embeddings API (OpenAI-compatible), and where its vectors are kept. */
export interface EmbeddingOptions {
  /** The address of the method `embeddings`. */
  readonly url: string
  readonly apiKey: string | undefined
  readonly model: string
  /** Sent to the API; undefined: the model decides. */
  readonly dimensions: number | undefined
  /** The database of the vectors; undefined: the gateway's own. */
  readonly dbUrl: string | undefined
  /** The name of what vectors of this model are kept under: another one begins anew. */
  readonly collection: string
}

const usualModel = 'text-embedding-3-small'

/** Models that take `dimensions`; `openai/` and the like may stand before the name. */
const takesDimensions = (model: string): boolean => /(^|\/)text-embedding-3-/.test(model)

/**
 * The options of the settings; undefined where no address is set, so that nothing is sent anywhere.
 * @param passthrough EMBEDDING_DIMENSIONS_API_PASSTHROUGH, which counts before the setting
 */
export function embeddingOptions (
  settings: SmartRouting, passthrough: boolean | undefined
): EmbeddingOptions | undefined {
  const { llmProviderBaseUrl: base, llmProviderApiKey: apiKey, embeddingDimensions, dbUrl } = settings
  if (!isText(base) || !URL.canParse(base)) return undefined
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/embeddings`
  const model = isText(settings.embeddingModel) ? settings.embeddingModel : usualModel
  const isSent = (passthrough ?? settings.embeddingDimensionsApiPassthrough ?? false) || takesDimensions(model)
  const dimensions = isSent ? embeddingDimensions : undefined
  const digest = createHash('sha256').update(JSON.stringify([url.href, model, dimensions])).digest('hex')
  return {
    url: url.href,
    apiKey: isText(apiKey) ? apiKey : undefined,
    model,
    dimensions,
    dbUrl: isText(dbUrl) ? dbUrl : undefined,
    collection: `tools/${digest.slice(0, 32)}`
  }
}

const isText = (value: string | undefined): value is string => value !== undefined && value !== ''
