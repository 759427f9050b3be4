import { isDeepStrictEqual } from 'node:util'
import fp from 'fastify-plugin'
import { openVectors } from '../../../db/open.ts'
import type { Vectors } from '../../../db/ports/vectors.ts'
import { isAdmins } from '../../settings/index.ts'
import { ApiEmbeddings } from './embeddings/index.ts'
import { embeddingOptions, type EmbeddingOptions } from './embeddings/options.ts'
import { VectorsAt } from './embeddings/vectors-at.ts'
import { smartRoutingOf, type SmartRouting } from './options.ts'
import { SmartProvider } from './provider.ts'
import { Search } from './search.ts'
import { extensionsLimits } from '../limits.ts'

/**
 * `$smart`: a presentation of the gateway that replaces the tools of a view by tools that search and call them. Only
 * the `$smart` routes request it.
 */
export default fp<{ vectors: Vectors }>(async (app, { vectors }) => {
  const { EMBEDDING_DIMENSIONS_API_PASSTHROUGH: passthrough } = app.config.env
  const settings = (): SmartRouting => smartRoutingOf(app.settings.current.system)
  let known: { readonly from: SmartRouting, readonly options: EmbeddingOptions | undefined } | undefined
  const options = (): EmbeddingOptions | undefined => {
    const from = settings()
    if (known?.from !== from) {
      const made = embeddingOptions(from, passthrough)
      // A change of other settings must not restart the embedding.
      known = { from, options: isDeepStrictEqual(made, known?.options) ? known?.options : made }
    }
    return known.options
  }
  const warn = (err: unknown, sentence: string): void => { app.log.warn({ err }, sentence) }
  const embeddings = new ApiEmbeddings({
    options,
    outbound: app.outbound,
    counters: app.counters,
    vectors,
    vectorsAt: new VectorsAt(openVectors),
    ownerOf: (server) => {
      const { current } = app.settings
      const owner = current.servers.get(server)?.config.owner
      return isAdmins(current, owner) ? undefined : owner
    },
    warn
  })
  const search = new Search(app.gateway, embeddings, (error) => {
    warn(error, 'The index of tools could not be brought up to date')
  })
  const isProgressive = (): boolean => settings().progressiveDisclosure === true
  const changed = app.gateway.addPresentation('search', {
    provider: new SmartProvider(app.gateway, search, isProgressive),
    present: (presented) => search.present(presented, isProgressive())
  })
  app.settings.on('changed', (next, former) => {
    if (next.system.smartRouting !== former.system.smartRouting) changed()
  })
  // The interval is short enough for processes that restart daily.
  const tidying = setInterval(() => {
    search.followAll()
    embeddings.removeUnused().catch((error: unknown) => {
      warn(error, 'Embeddings that are not used could not be removed')
    })
  }, extensionsLimits.smartRouting.embeddings.marked / 8).unref()
  app.addHook('onClose', async () => {
    clearInterval(tidying)
    await embeddings.close()
  })
}, { name: 'smart-routing', dependencies: ['config', 'settings', 'outbound', 'access', 'gateway'] })
