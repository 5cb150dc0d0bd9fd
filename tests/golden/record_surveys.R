# Answers of R's survey package about the generated surveys, as JSON; called by record_surveys.py.
suppressMessages({library(survey); library(jsonlite)})
folder <- commandArgs(trailingOnly = TRUE)[1]
read <- function(name) {
  table <- read.csv(file.path(folder, name))
  table$one <- 1
  table
}
options(survey.lonely.psu = "fail")
domains <- 0:3

estimates <- function(design) {
  of <- function(ask) {
    found <- lapply(domains, function(number) ask(subset(design, domain == number)))
    list(values = sapply(found, function(one) one[1]), variances = sapply(found, function(one) one[2]))
  }
  pair <- function(stat) c(as.numeric(coef(stat))[1], as.matrix(vcov(stat))[1, 1])
  list(
    total = of(function(part) pair(svytotal(~y, part))),
    count = of(function(part) pair(svytotal(~one, part))),
    mean = of(function(part) pair(svymean(~y, part))),
    ratio = of(function(part) pair(svyratio(~y, ~x, part))),
    share = of(function(part) pair(svymean(~I(1 * (category == 1)), part))),
    covariance = sapply(domains, function(number) vcov(svytotal(~ y + x, subset(design, domain == number)))[1, 2])
  )
}

replicated <- function(table, weights, type, mse, ...) {
  design <- suppressWarnings(svrepdesign(
    variables = table, repweights = weights, weights = table$weight, type = type, combined.weights = TRUE, mse = mse, ...
  ))
  of <- function(ask) {
    found <- lapply(domains, function(number) ask(subset(design, domain == number)))
    list(values = sapply(found, function(one) one[1]), variances = sapply(found, function(one) one[2]))
  }
  pair <- function(stat) c(as.numeric(coef(stat))[1], as.matrix(vcov(stat))[1, 1])
  list(
    total = of(function(part) pair(svytotal(~y, part))),
    mean = of(function(part) pair(svymean(~y, part))),
    ratio = of(function(part) pair(svyratio(~y, ~x, part)))
  )
}

elements <- read("elements.csv")
clustered <- read("clusters.csv")
lonely <- read("lonely.csv")
paired <- read("paired.csv")
replicates <- read.csv(file.path(folder, "paired_replicates.csv"))
columns <- function(method) as.matrix(replicates[, grep(paste0("^", method, "_"), names(replicates))])

of_elements <- svydesign(ids = ~1, strata = ~stratum, weights = ~weight, fpc = ~population, data = elements)
of_clusters <- svydesign(ids = ~cluster, strata = ~stratum, weights = ~weight, data = clustered)
with_fpc <- svydesign(ids = ~cluster, strata = ~stratum, weights = ~weight, fpc = ~population, data = clustered)
unstratified <- svydesign(ids = ~cluster, weights = ~weight, data = clustered)

answers <- list(
  versions = list(R = R.version.string, survey = as.character(packageVersion("survey"))),
  elements = estimates(of_elements),
  clusters = estimates(of_clusters),
  "clusters with fpc" = estimates(with_fpc),
  unstratified = estimates(unstratified),
  respondents = estimates(subset(with_fpc, responded == 1))
)

of_lonely <- svydesign(ids = ~cluster, strata = ~stratum, weights = ~weight, data = lonely)
options(survey.lonely.psu = "certainty")
answers[["lonely certainty"]] <- estimates(of_lonely)
options(survey.lonely.psu = "adjust")
# Before version 4.3 of survey, "adjust" centred totals at 0 (svy answers for them); means and ratios are centred well.
answers[["lonely centred"]] <- estimates(of_lonely)[c("mean", "ratio", "share")]
options(survey.lonely.psu = "fail")

for (mse in c(TRUE, FALSE)) {
  ask <- function(method, type, ...) replicated(paired, columns(method), type, mse, ...)
  answers[[if (mse) "replicates about the estimate" else "replicates about the mean"]] <- list(
    brr = ask("brr", "BRR"),
    fay = ask("fay", "Fay", rho = 0.3),
    jk1 = ask("jk1", "JK1", scale = 15 / 16),
    jkn = ask("jkn", "JKn", scale = 1, rscales = rep(0.5, 16)),
    bootstrap = ask("bootstrap", "bootstrap", scale = 1 / 20),
    sdr = ask("sdr", "successive-difference")
  )
}

# Public totals: those of the sample, moved by a few percent.
a_totals <- data.frame(a = 0:2, Freq = as.vector(tapply(clustered$weight, clustered$a, sum)) * c(1.1, 0.95, 1.02))
b_totals <- data.frame(b = 0:3, Freq = as.vector(tapply(clustered$weight, clustered$b, sum)) * c(0.9, 1.05, 1.2, 0.97))
b_totals$Freq <- b_totals$Freq * sum(a_totals$Freq) / sum(b_totals$Freq)
x_total <- sum(clustered$weight * clustered$x) * 1.03
answers$totals <- list(a = a_totals$Freq, b = b_totals$Freq, x = x_total)

adjusted <- function(design) c(list(weights = as.vector(weights(design))), estimates(design))
linear <- c("(Intercept)" = sum(a_totals$Freq), "factor(a)1" = a_totals$Freq[2], "factor(a)2" = a_totals$Freq[3], x = x_total)
answers[["post-stratified"]] <- adjusted(postStratify(with_fpc, ~a, a_totals))
raked <- rake(with_fpc, list(~a, ~b), list(a_totals, b_totals), control = list(maxit = 200, epsilon = 1e-15))
answers[["raked by margins"]] <- list(weights = as.vector(weights(raked)))
both <- c(linear[1:3], setNames(b_totals$Freq[2:4], paste0("factor(b)", 1:3)))
answers[["raked"]] <- adjusted(
  calibrate(with_fpc, ~ factor(a) + factor(b), both, calfun = "raking", epsilon = 1e-13, maxit = 200)
)
answers[["calibrated"]] <- adjusted(calibrate(with_fpc, ~ factor(a) + x, linear, calfun = "linear"))
answers[["calibrated within bounds"]] <- adjusted(
  calibrate(with_fpc, ~ factor(a) + x, linear, calfun = "linear", bounds = c(0.92, 1.12), epsilon = 1e-13, maxit = 500)
)

asked <- c(0.1, 0.25, 0.5, 0.9)
found <- svyquantile(~step, with_fpc, asked, ci = TRUE, interval.type = "mean", qrule = "math")$step
below <- function(value) as.numeric(SE(svymean(~I(1 * (step <= value)), with_fpc)))
answers$quantiles <- list(
  probabilities = asked, values = found[, "quantile"], lower = found[, 2], upper = found[, 3],
  standard_errors = sapply(found[, "quantile"], below), degrees_of_freedom = degf(with_fpc)
)

cat(toJSON(answers, auto_unbox = TRUE, digits = NA))
