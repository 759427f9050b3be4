import type { FastifyPluginAsync } from 'fastify'
import { abortSignalOf } from '../caller.ts'
import type { BundleManifest, UploadedBundle } from '../../schemas/bundle.ts'
import { showServersToAdd, tabsOfAddServerPage } from './entries.ts'
import { createPageRouter } from './page.ts'
import { addUploadForm } from './uploads.ts'

type Uploaded = UploadedBundle & { readonly manifest: Pick<BundleManifest, 'version' | 'description' | 'display_name'> }

const path = '/add-a-server/bundle'

/** The page that uploads a bundle (a server packed into one file), and then shows it as a server to add. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  const lead = 'A local server in one file. The upload is stored; it runs once you add the server.'
  createPageRouter(app).page('bundle', { title: 'Bundle', path }, ({ principal }) =>
    ({ lead, tabs: tabsOfAddServerPage(app, principal, 'bundle') }))

  await addUploadForm(app, {
    path,
    field: 'mcpbFile',
    receive: async (request, file, reply) => {
      const target = { url: '/mcpb/upload', field: 'mcpbFile' }
      const { data } = await kit.api.upload(request, target, file, abortSignalOf(reply))
      const { name, config, manifest, required, usedBy, warnings } = data as Uploaded
      const uses = usedBy.length === 0
        ? []
        : [`It replaced the previous version, which ${usedBy.join(', ')} runs until it is reloaded`]
      return showServersToAdd(app, reply, {
        entries: [{
          index: 0,
          name,
          config: JSON.stringify(config, undefined, 2),
          isChosen: true,
          remarks: [...warnings, ...uses],
          variables: required.map(({ key, title: label = key, description, multiple, sensitive }) => ({
            key: `user_config.${key}`,
            title: label,
            isNeeded: true,
            ...description !== undefined && { description },
            ...multiple === true && { multiple },
            ...sensitive === true && { isSecret: true }
          }))
        }],
        source: {
          title: [manifest.display_name ?? name, manifest.version].filter((each) => each !== undefined).join(' '),
          text: manifest.description ?? 'Check the command before you add it: nobody has reviewed this program.',
          back: `${kit.base}${path}`
        }
      })
    },
    refuse: (request, reply, error) => kit.renderer.send(reply, 'bundle', {
      title: 'Bundle',
      lead,
      tabs: tabsOfAddServerPage(app, request.principal, 'bundle'),
      errors: { mcpbFile: error.message.replace(/^"mcpbFile": /, '') }
    }, error.statusCode)
  })
}
export default routes
