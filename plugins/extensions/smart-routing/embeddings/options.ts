import { createHash } from 'node:crypto'
import type { SmartRoutingSettings } from '../options.ts'

/** The settings of an embeddings API (OpenAI-compatible), and of the storage for its vectors. */
export interface EmbeddingOptions {
  /** The URL of the `embeddings` endpoint. */
  readonly url: string
  readonly apiKey: string | undefined
  readonly model: string
  /** The `dimensions` to request, or undefined for the model's default. */
  readonly dimensions: number | undefined
  /** The URL of the database for the vectors, or undefined for the gateway's own database. */
  readonly dbUrl: string | undefined
  /** The name of the collection of vectors. Each combination of URL, model and dimensions has its own collection. */
  readonly collection: string
}

const defaultModel = 'text-embedding-3-small'

/** Whether a model is known to accept `dimensions`. Its name may have a prefix such as `openai/`. */
const acceptsDimensions = (model: string): boolean => /(^|\/)text-embedding-3-/.test(model)

/**
 * Returns the embedding options of the settings; undefined if they contain no valid API address: then nothing is sent.
 * @param passthrough the environment variable EMBEDDING_DIMENSIONS_API_PASSTHROUGH, which takes precedence over the
 *   setting `embeddingDimensionsApiPassthrough`; undefined if it is not set
 */
export function embeddingOptionsOf (
  settings: SmartRoutingSettings, passthrough: boolean | undefined
): EmbeddingOptions | undefined {
  const { llmProviderBaseUrl: base, llmProviderApiKey: apiKey, embeddingDimensions, dbUrl } = settings
  if (!isText(base) || !URL.canParse(base)) return undefined
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/embeddings`
  const model = isText(settings.embeddingModel) ? settings.embeddingModel : defaultModel
  const sendsDimensions =
    (passthrough ?? settings.embeddingDimensionsApiPassthrough ?? false) || acceptsDimensions(model)
  const dimensions = sendsDimensions ? embeddingDimensions : undefined
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
