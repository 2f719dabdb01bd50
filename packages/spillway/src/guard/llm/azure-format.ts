/** Azure OpenAI: the API of OpenAI with the deployment, which is the model, in most of its paths. */
import { openaiFormat } from './openai-format.js'
import type { VendorFormat } from './vendor-format.js'

/** `/openai/deployments/{deployment}/chat/completions`. Paths such as `/openai/v1/responses` name no deployment. */
const DEPLOYMENT = /(\/deployments\/)([^/]+)(?=\/)/

export const azureFormat: VendorFormat = {
  ...openaiFormat,
  name: 'azure',
  modelIn: deploymentIn,
  withModel: (path, model) =>
    path.replace(DEPLOYMENT, (_, prefix) => prefix + encodeURIComponent(model)),
  factsOf(fields, prompt, address) {
    const facts = openaiFormat.factsOf(fields, prompt, address)
    // Azure ignores the model in the body if the path names a deployment.
    return { ...facts, model: deploymentIn(address.path) ?? facts.model }
  },
}

function deploymentIn(path: string): string | undefined {
  return DEPLOYMENT.exec(path)?.[2]
}
