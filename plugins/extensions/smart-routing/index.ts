import { isDeepStrictEqual } from 'node:util'
import fp from 'fastify-plugin'
import { openVectors } from '../../../db/open.ts'
import type { Vectors } from '../../../db/ports/vectors.ts'
import type { CatalogueCache } from '../../../db/store.ts'
import { isAdmins } from '../../settings/index.ts'
import { ApiEmbeddings } from './embeddings/index.ts'
import { embeddingOptions, type EmbeddingOptions } from './embeddings/options.ts'
import { VectorsAt } from './embeddings/vectors-at.ts'
import { isCalledInstead } from './call-tool.ts'
import { Learning } from './learning/learning.ts'
import { smartRoutingOf, type SmartRouting } from './options.ts'
import { SmartProvider } from './provider.ts'
import { listedTools } from './search-tools.ts'
import { Search, type SearchParts } from './search.ts'
import { extensionsLimits } from '../limits.ts'

interface SmartRoutingOptions {
  readonly vectors: Vectors
  readonly catalogueCache: Pick<CatalogueCache, 'readUses' | 'writeUses'>
}

/**
 * `$smart`: a presentation of the gateway that replaces the tools of a view by tools that search and call them. Only
 * the `$smart` routes request it.
 */
export default fp<SmartRoutingOptions>(async (app, { vectors, catalogueCache }) => {
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
  const learning = new Learning({
    cache: catalogueCache,
    listed: (server) => {
      const catalogues = app.gateway.catalogues(server)
      if (catalogues.length === 0) return undefined
      return new Set(catalogues.flatMap(({ lists }) => lists.tools.map(({ key }) => key)))
    },
    warn: (error) => { warn(error, 'The use of tools could not be read or stored') }
  })
  app.gateway.addHook('onDone', ({ exchange, provider, item, outcome, isToolError }) => {
    if (!isCalledInstead(exchange) || settings().learn === false) return
    if (item === undefined || outcome !== 'ok' || isToolError) return
    learning.called(exchange.view.principal.key, provider, item)
  })
  const parts = (): SearchParts => (
    { hasStaticModel: settings().staticModel !== false, learning: settings().learn === false ? undefined : learning }
  )
  const search = new Search(app.gateway, embeddings, parts, (error) => {
    warn(error, 'Tools could not be searched in full')
  })
  const isProgressive = (): boolean => settings().progressiveDisclosure === true
  const changed = app.gateway.addPresentation('search', {
    provider: new SmartProvider(app.gateway, search, isProgressive),
    present: (presented) => search.present(presented, isProgressive())
  })
  app.settings.on('changed', (next, former) => {
    if (next.system.smartRouting !== former.system.smartRouting) changed()
  })
  let isDue = false
  app.gateway.addHook('onListsChanged', () => {
    if (isDue || !embeddings.isOn) return
    isDue = true
    setImmediate(() => {
      isDue = false
      embeddings.follow(listedTools(app.settings.current.servers.keys(), app.gateway))
    })
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
    await learning.close()
  })
}, { name: 'smart-routing', dependencies: ['config', 'settings', 'outbound', 'access', 'gateway'] })
