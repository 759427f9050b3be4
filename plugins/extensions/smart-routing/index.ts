import { isDeepStrictEqual } from 'node:util'
import fp from 'fastify-plugin'
import { openVectorStore } from '../../../db/open.ts'
import type { VectorStore } from '../../../db/ports/vectors.ts'
import type { CatalogueCache } from '../../../db/store.ts'
import { runPeriodically } from '../../base/limits/index.ts'
import { isAdminOwner } from '../../settings/index.ts'
import { ApiEmbeddings } from './embeddings/index.ts'
import { embeddingOptionsOf, type EmbeddingOptions } from './embeddings/options.ts'
import { SeparateVectorDatabase } from './embeddings/separate-vectors.ts'
import { isMadeByCallTool } from './call-tool.ts'
import { ToolUseLearning } from './learning/learning.ts'
import { smartRoutingSettingsOf, type SmartRoutingSettings } from './options.ts'
import { SmartProvider } from './provider.ts'
import { toolsListedByServers } from './shown-tools.ts'
import { ToolSearch, type RankingOptions } from './search.ts'
import { extensionsLimits } from '../limits.ts'

interface SmartRoutingOptions {
  readonly vectors: VectorStore
  readonly catalogueCache: Pick<CatalogueCache, 'readUses' | 'writeUses'>
}

/**
 * Adds `$smart`, a presentation of the gateway that replaces the tools of a view by a few tools that search and call
 * them. It is used on the `$smart` routes only.
 */
export default fp<SmartRoutingOptions>(async (app, { vectors, catalogueCache }) => {
  const { EMBEDDING_DIMENSIONS_API_PASSTHROUGH: passthrough } = app.config.env
  const settings = (): SmartRoutingSettings => smartRoutingSettingsOf(app.settings.current.system)
  let known: { readonly from: SmartRoutingSettings, readonly options: EmbeddingOptions | undefined } | undefined
  const options = (): EmbeddingOptions | undefined => {
    const from = settings()
    if (known?.from !== from) {
      const made = embeddingOptionsOf(from, passthrough)
      // Equal options stay the same object: changes of other settings must not restart the embedding.
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
    separateVectors: new SeparateVectorDatabase(openVectorStore),
    ownerOf: (server) => {
      const { current } = app.settings
      const owner = current.servers.get(server)?.config.owner
      return isAdminOwner(current, owner) ? undefined : owner
    },
    warn
  })
  const learning = new ToolUseLearning({
    cache: catalogueCache,
    listed: (server) => {
      const catalogues = app.gateway.catalogues(server)
      if (catalogues.length === 0) return undefined
      return new Set(catalogues.flatMap(({ lists }) => lists.tools.map(({ key }) => key)))
    },
    warn: (error) => { warn(error, 'The usage of tools could not be read or stored') }
  })
  app.gateway.addHook('onDone', ({ exchange, provider, item, outcome, isToolError }) => {
    if (!isMadeByCallTool(exchange) || settings().learn === false) return
    if (item === undefined || outcome !== 'ok' || isToolError) return
    learning.countCall(exchange.view.principal.key, provider, item)
  })
  const parts = (): RankingOptions => (
    { hasStaticModel: settings().staticModel !== false, learning: settings().learn === false ? undefined : learning }
  )
  const search = new ToolSearch(app.gateway, embeddings, parts, (error) => {
    warn(error, 'Tools could not be searched in full')
  })
  const isProgressive = (): boolean => settings().progressiveDisclosure === true
  const announceChange = app.gateway.addPresentation('search', {
    provider: new SmartProvider(app.gateway, search, isProgressive),
    present: (presented) => search.presentView(presented, isProgressive())
  })
  app.settings.on('changed', (next, former) => {
    if (next.system.smartRouting !== former.system.smartRouting) announceChange()
  })
  let isDue = false
  app.gateway.addHook('onListsChanged', () => {
    if (isDue || !embeddings.isEnabled) return
    isDue = true
    setImmediate(() => {
      isDue = false
      embeddings.embedInBackground(toolsListedByServers(app.settings.current.servers.keys(), app.gateway))
    })
  })
  // Runs more often than vectors need to be marked, so that it also runs in a process that restarts every day.
  runPeriodically(app, extensionsLimits.smartRouting.embeddings.markInterval / 8, async () => {
    search.embedAll()
    await embeddings.removeUnused()
  }, (error) => { warn(error, 'Unused embeddings could not be removed') })
  app.addHook('onClose', async () => {
    await embeddings.close()
    await learning.close()
  })
}, { name: 'smart-routing', dependencies: ['config', 'settings', 'outbound', 'access', 'gateway'] })
