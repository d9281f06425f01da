"""Static vectors: one vector per token (Mikolov et al. 2013; Pennington et al. 2014)."""
