// A language model writes, a served policy chooses: the loop over any endpoints that speak OpenAI's protocol.
//
//   export OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_API_KEY=... OPENAI_MODEL=...
//   02_llm examples/tasks/cpu/gemm.json [policy URL] [policy model]

#include <mtmc/mtmc.hpp>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s TASK.json [policy URL] [policy model]\n", argv[0]);
    return 2;
  }
  const auto task = mtmc::load_task(argv[1]);
  const mtmc::AnyTransport network = mtmc::CurlTransport{};

  // Everything that asks shares one account; nothing is sent that could pass its caps.
  const auto endpoint = mtmc::endpoint_from_environment();
  mtmc::ChatClientOptions money;
  money.prices = {{.model = "*", .prompt = 0.3, .completion = 1.2}}; // for a million tokens
  money.spending = mtmc::Spending{{.tokens = 2'000'000, .cost = 5}};
  const mtmc::ChatClient client{mtmc::Endpoint{network, endpoint}, money};

  // The served policy says at the start how it scores; without one the rules choose.
  mtmc::AnyPolicy policy = mtmc::RulesPolicy{};
  if (argc > 2) {
    mtmc::EndpointOptions served{.base_url = argv[2], .model = argc > 3 ? argv[3] : endpoint.model};
    mtmc::HttpPolicy http{mtmc::Endpoint{network, served}, {.card = mtmc::paper_policy_card()}};
    std::printf("%s\n", describe(http.report()).c_str());
    policy = std::move(http);
  }

  mtmc::TerminalReport report{stdout};
  mtmc::Loop loop{policy,
                  mtmc::OpenAiCoder{client},
                  mtmc::AstRegionFinder{},
                  mtmc::CpuEvaluator{},
                  {.max_steps = 8,
                   .samples = 4,
                   .repairs = 1,
                   .output = "runs",
                   .resume = true,
                   .observer = report.observer()}};
  const mtmc::Result result = loop.optimize(task);

  std::printf("\n%s\n", result.best.source.c_str());
  std::printf("speed-up %s for %lld tokens and a cost of %.4f\n", speed_up_text(result.speed_up).c_str(),
              static_cast<long long>(result.usage.tokens()), result.usage.cost);
  return result.error ? 3 : 0;
} catch (const mtmc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
